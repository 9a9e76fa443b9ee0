//! Has no code, only dependencies.
//!
//! `cargo test` and `cargo clippy --all-targets` enable the features of dev-dependencies too.
//! `cargo doc`, and `cargo build` of a tool, do not: they would build most dependencies a second
//! time. With this crate in the workspace, all of them enable the same features.
