//! Fuzzes the parsers of metadata documents, claims and keys.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| portcullis_fuzz_bodies::metadata_documents(data));
