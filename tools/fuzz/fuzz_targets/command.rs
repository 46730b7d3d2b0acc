//! See `nvmetal_fuzz::command`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::command::run(data));
