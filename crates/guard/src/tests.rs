//! Tests of the guard, one file per subject.

mod allocations;
mod authentication;
mod authorization;
mod builder;
mod claims;
mod cross_origin;
mod decisions;
mod document;
mod held_token;
mod limits;
mod new_decision;
mod off;
mod properties;
mod public_paths;
mod secrecy;
mod settings;
mod support;
