//! Fuzzes the parser of compact tokens.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::compact_token(data));
