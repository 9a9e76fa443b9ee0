//! Fuzzes the challenge parser.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::challenge(data));
