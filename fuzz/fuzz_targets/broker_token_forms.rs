//! Fuzzes the token, revocation and introspection endpoints of the broker.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_token_forms(data));
