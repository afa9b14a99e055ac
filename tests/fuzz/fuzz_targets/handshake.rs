//! libFuzzer drives the target `handshake`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| retick_fuzz::run("handshake", bytes));
