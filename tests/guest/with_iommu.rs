//! A guest with an IOMMU and two drives: the first with blocks of 512 bytes, the second of 64 MiB with blocks of 4096
//! bytes and transfers of at most 16 KiB.
#![forbid(unsafe_code)]

mod data;
mod ends;
mod input;
mod measures;
mod refuses;
mod via_kernel;
