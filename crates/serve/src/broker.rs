//! The authorization server of `[broker]`: what of it outlives a configuration, its limits, and
//! what is reported of it.

pub(crate) mod observer;
pub(crate) mod persistence;
pub(crate) mod process;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;
