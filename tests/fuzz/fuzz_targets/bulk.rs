//! libFuzzer drives the target `bulk`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("bulk", bytes));
