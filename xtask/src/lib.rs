//! The code that the tools of this workspace share: its location, builds of its programs, and tables of results.

pub mod built;
pub mod checklist;
pub mod workspace;
