//! See `nvmetal_fuzz::emulator`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::emulator::run(data));
