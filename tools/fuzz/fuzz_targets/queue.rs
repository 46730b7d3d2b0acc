//! See `nvmetal_fuzz::queue`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::queue::run(data));
