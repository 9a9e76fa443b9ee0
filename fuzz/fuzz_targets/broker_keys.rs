//! Fuzzes the parser of the broker's keys.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_keys(data));
