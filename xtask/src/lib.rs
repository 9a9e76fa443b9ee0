//! The code that the tools of this workspace share: its location, builds of its programs, installed
//! programs, and tables of results.

pub mod built;
pub mod checklist;
pub mod crate_rows;
pub mod instructions;
pub mod programs;
pub mod workspace;
