//! Fuzzes URIs and well-known URLs.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::well_known(data));
