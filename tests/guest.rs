//! The program as a person runs it, on Linux's own VFIO and IOMMU: inside the virtual machine of `tools/vm`.
//!
//! `tools/vm/tests/guest` builds the program and these tests and runs them in the guests that they need. They overwrite
//! the guest's drives and change who has them, one test after the other, so outside they are ignored. What a guest has
//! is told by its environment: `NVMETAL_BIN` is the program, `VM_BDFS` are the drives, and `GUEST_IOMMU` lists the
//! kernel's interfaces that must work there, so that one that is missing is a failed test and not a shorter list.
//!
//! Every test that lets the program near a drive ends by asking the kernel, not the program, who has the drive.
#![forbid(unsafe_code)]

#[path = "guest/machine.rs"]
mod machine;

#[path = "guest/shared_group.rs"]
mod shared_group;
#[path = "guest/with_iommu.rs"]
mod with_iommu;
#[path = "guest/without_iommu.rs"]
mod without_iommu;
