//! Fuzzes the event stream parser.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::sse(data));
