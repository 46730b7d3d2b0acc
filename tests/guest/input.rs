//! What cannot be done is said in one sentence, with the right exit code, before the drive is touched or with the drive
//! given back.
#![forbid(unsafe_code)]

use crate::machine::{drive, drives, nvmetal, nvmetal_as_nobody};

#[test]
#[ignore = "needs the guest's drives"]
fn every_wrong_input_is_answered_by_one_sentence_and_changes_nothing() {
    let drives = drives();
    let (small, big) = (drives[0].address.as_str(), drives[1].address.as_str());
    let table: &[(&[&str], i32, &[&str])] = &[
        (&["bench", "0000:77:00.0", "--runtime", "1"], 2, &["0000:77:00.0", "nvmetal list"]),
        (&["validate", "0000:77:00.0"], 2, &["0000:77:00.0", small]),
        (&["link", "77:00.0"], 2, &["0000:77:00.0"]),
        (&["bind", "0000:00:00.0"], 2, &["0000:00:00.0"]),
        (&["release", "0000:77:00.0"], 2, &["0000:77:00.0"]),
        (&["bench", "0000:01:00", "--runtime", "1"], 2, &["0000:01:00"]),
        (&["validate", "zebra"], 2, &["zebra"]),
        (&["bench", "/dev/nvme7", "--runtime", "1"], 2, &["nvme7"]),
        (&["bench", small, "--runtime", "0"], 2, &["runtime"]),
        (&["bench", small, "--runtime", "1", "--bs", "1000"], 2, &["1000", "512"]),
        (&["bench", big, "--runtime", "1", "--bs", "512"], 2, &["512", "4096"]),
        (&["bench", small, "--runtime", "1", "--bs", "0"], 2, &[]),
        (&["bench", small, "--runtime", "1", "--iodepth", "100000"], 2, &["100000"]),
        (&["bench", small, "--runtime", "1", "--iodepth", "0"], 2, &[]),
        (&["bench", small, "--runtime", "1", "--numjobs", "0"], 2, &[]),
        (&["bench", small, "--runtime", "1", "--offset", "2G"], 2, &[]),
        (&["bench", small, "--runtime", "1", "--namespace-id", "9"], 2, &["9"]),
        (&["bench", small, "--runtime", "1", "--iommu", "nothing"], 2, &["nothing", "type1"]),
    ];
    for (words, code, expected) in table {
        nvmetal(words).exits(*code).says(expected);
        drives.iter().for_each(crate::machine::Drive::is_the_kernels);
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_dry_run_says_what_it_would_do_and_does_not_take_the_drive() {
    let drive = drive();
    for words in [&["bench", "--runtime", "1"][..], &["validate", "--quick"], &["bind"]] {
        let done = nvmetal(&[words, &[&drive.address, "--dry-run"]].concat()).exits(0);
        assert!(done.out.contains(&drive.address), "{words:?}: {}", done.out);
        drive.is_the_kernels();
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn the_kernels_names_lead_to_the_same_drive_as_the_address() {
    let drive = drive();
    let disk = drive.disk();
    for name in [&disk, &disk.replace("/dev/", ""), &drive.controller(), &drive.address.replace("0000:", "")] {
        let result = nvmetal(&["bench", name, "--size", "64k", "-o", "json"]).exits(0).json();
        assert_eq!(result["device"]["address"], drive.address.as_str(), "{name}");
        drive.is_the_kernels();
    }
}

#[test]
#[ignore = "needs the guest's drive"]
fn a_user_without_rights_is_told_what_takes_root_and_still_sees_the_drives() {
    let drive = drive();
    let address = drive.address.as_str();
    for words in [&["validate", "--quick", address][..], &["smart", address], &["id", address, "--via", "kernel"]] {
        nvmetal_as_nobody(words).exits(6).says(&["root"]);
        drive.is_the_kernels();
    }
    // Where a lock can be had, who else uses the drive cannot be seen: that is doubt, and doubt is a refusal.
    let done = nvmetal_as_nobody(&["bind", address]);
    done.says(&["root"]);
    assert!(matches!(done.code, 5 | 6), "{}", done.err);
    drive.is_the_kernels();
    for words in [&["list"][..], &["link", address]] {
        let done = nvmetal_as_nobody(words).exits(0);
        assert!(done.out.contains(address), "{}", done.out);
    }
    drive.is_the_kernels();
}
