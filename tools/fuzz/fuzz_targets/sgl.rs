//! See `nvmetal_fuzz::sgl`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::sgl::run(data));
