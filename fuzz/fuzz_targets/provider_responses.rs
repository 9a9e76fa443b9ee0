//! Fuzzes the parsers of identity providers' responses.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::provider_responses(data));
