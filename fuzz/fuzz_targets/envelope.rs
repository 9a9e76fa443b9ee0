//! Fuzzes the parser of JSON-RPC messages.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::envelope(data));
