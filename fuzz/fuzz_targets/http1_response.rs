//! Fuzzes the readers of the heads and bodies of HTTP/1.1 responses.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::http1_response(data));
