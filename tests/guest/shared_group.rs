//! Two drives in one IOMMU group: neither can be taken while the kernel has the other, and neither is unbound for it.
#![forbid(unsafe_code)]

use crate::machine::{Drive, drives, nvmetal};

#[test]
#[ignore = "needs the guest's drives"]
fn a_group_that_is_not_viable_ends_with_6_and_names_the_other_drive() {
    let drives = drives();
    let (address, other) = (drives[0].address.as_str(), drives[1].address.as_str());
    for words in [
        &["bind", address][..],
        &["bench", address, "--runtime", "1"],
        &["validate", "--quick", address, "--via", "vfio"],
        &["smart", address, "--via", "vfio"],
    ] {
        nvmetal(words).exits(6).says(&[address, other, "nvme"]);
        drives.iter().for_each(Drive::is_the_kernels);
    }
    let doctor = nvmetal(&["doctor", address]).exits(6);
    assert!(doctor.out.contains(other), "{}", doctor.out);
}

#[test]
#[ignore = "needs the guest's drives"]
fn a_drive_of_such_a_group_is_judged_through_the_kernel() {
    let drives = drives();
    let done = nvmetal(&["validate", "--quick", &drives[0].address, "-o", "json"]);
    let result = done.json();
    assert_eq!(result["device"]["transport"], "kernel", "{result:#}");
    assert_eq!(done.code, if result["verdict"] == "FAIL" { 3 } else { 0 });
    drives.iter().for_each(Drive::is_the_kernels);
}
