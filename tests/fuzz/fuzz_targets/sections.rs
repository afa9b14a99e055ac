//! libFuzzer drives the target `sections`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("sections", bytes));
