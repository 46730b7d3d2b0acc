//! See `nvmetal_fuzz::describe`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::describe::run(data));
