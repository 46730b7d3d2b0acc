//! A machine without an IOMMU: drives are shown and judged through the kernel, but not taken.
#![forbid(unsafe_code)]

use crate::machine::{Drive, drive, drives, nvmetal};

#[test]
#[ignore = "needs the guest's drive"]
fn taking_a_drive_ends_with_6_and_says_what_is_missing() {
    let drive = drive();
    let address = drive.address.as_str();
    for words in [&["bench", address, "--runtime", "1"][..], &["bench", address, "--runtime", "1", "--iommu", "type1"]]
    {
        nvmetal(words).exits(6).says(&["IOMMU"]);
        drive.is_the_kernels();
    }
    let error = nvmetal(&["bench", address, "--runtime", "1", "-o", "json"]).exits(6).json();
    assert_eq!(error["exit_code"], 6);
    drive.is_the_kernels();
}

#[test]
#[ignore = "needs the guest's drives"]
fn list_and_link_work_all_the_same() {
    let drives = drives();
    let text = nvmetal(&["list"]).exits(0).out;
    for drive in &drives {
        assert!(text.contains(&drive.address), "{text}");
        nvmetal(&["link", &drive.address]).exits(0);
    }
    nvmetal(&["release", "--all"]).exits(0);
    drives.iter().for_each(Drive::is_the_kernels);
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_drive_is_judged_through_the_kernel_and_the_output_says_why() {
    let drive = drive();
    let done = nvmetal(&["validate", "--quick", &drive.address, "-o", "json"]);
    let result = done.json();
    assert_eq!(result["device"]["transport"], "kernel", "{result:#}");
    assert!(result["kernel"]["why"].as_str().is_some_and(|why| why.contains("IOMMU")), "{:#}", result["kernel"]);
    assert_eq!(done.code, if result["verdict"] == "FAIL" { 3 } else { 0 });
    drive.is_the_kernels();
    for words in [&["smart"][..], &["id"]] {
        let text = nvmetal(&[words, &[&drive.address]].concat()).exits(0).out;
        assert!(text.contains("via kernel"), "{text}");
        nvmetal(&[words, &[&drive.address, "--via", "vfio"]].concat()).exits(6).says(&["IOMMU"]);
    }
    nvmetal(&["doctor", &drive.address]).exits(6);
    drive.is_the_kernels();
}
