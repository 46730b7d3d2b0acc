//! See `nvmetal_fuzz::lifecycle`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::lifecycle::run(data));
