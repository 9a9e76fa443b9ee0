//! Fuzzes the registration of clients at the broker.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::broker_registration(data));
