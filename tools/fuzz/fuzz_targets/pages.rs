//! See `nvmetal_fuzz::pages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::pages::run(data));
