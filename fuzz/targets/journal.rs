#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tanmi_fuzz::journal(data));
