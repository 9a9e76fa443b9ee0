//! Attacks on tokens and keys, one file per class of attacks.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod algorithm_confusion;
mod hostile_encoding;
mod hostile_header;
mod hostile_key;
mod key_choice;
mod support;
