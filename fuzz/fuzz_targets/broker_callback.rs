//! Fuzzes the redirect URI of the broker at a provider.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_callback(data));
