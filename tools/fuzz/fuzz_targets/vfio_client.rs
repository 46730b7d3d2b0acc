//! See `nvmetal_fuzz::vfio_client`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nvmetal_fuzz::vfio_client::run(data));
