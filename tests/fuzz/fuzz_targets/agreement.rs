//! libFuzzer drives the target `agreement`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("agreement", bytes));
