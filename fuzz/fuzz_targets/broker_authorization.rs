//! Fuzzes the authorization endpoint of the broker.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_authorization(data));
