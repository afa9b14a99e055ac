//! libFuzzer drives the target `control`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("control", bytes));
