//! See `nvmetal_fuzz::prp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::prp::run(data));
