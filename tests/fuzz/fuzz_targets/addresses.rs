//! libFuzzer drives the target `addresses`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("addresses", bytes));
