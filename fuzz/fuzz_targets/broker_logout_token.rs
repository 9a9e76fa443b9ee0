//! Fuzzes the back-channel logout of the broker.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_logout_token(data));
