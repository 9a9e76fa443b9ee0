//! Fuzzes the parser of the broker's refresh tokens.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_refresh_token(data));
