//! Fuzzes the form of the broker's consent page.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_consent(data));
