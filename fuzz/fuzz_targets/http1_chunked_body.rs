//! Fuzzes the reader of chunked HTTP/1.1 bodies.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::http1_chunked_body(data));
