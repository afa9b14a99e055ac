//! libFuzzer drives the target `inputs`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("inputs", bytes));
