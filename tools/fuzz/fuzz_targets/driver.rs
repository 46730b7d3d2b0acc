//! See `nvmetal_fuzz::driver`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::driver::run(data));
