//! What the tools of this workspace share: where the workspace is, building its programs, and tables of results.

pub mod built;
pub mod checklist;
pub mod workspace;
