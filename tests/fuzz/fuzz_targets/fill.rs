//! libFuzzer drives the target `fill`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("fill", bytes));
