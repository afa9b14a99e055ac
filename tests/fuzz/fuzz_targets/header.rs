//! libFuzzer drives the target `header`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("header", bytes));
