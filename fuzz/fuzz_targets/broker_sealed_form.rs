//! Fuzzes the sealed requests of the broker's consent pages.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_sealed_form(data));
