//! See `nvmetal_fuzz::vfio_server`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::vfio_server::run(data));
