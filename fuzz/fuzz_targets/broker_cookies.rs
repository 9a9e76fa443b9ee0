//! Fuzzes the reader of the broker's cookies.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_cookies(data));
