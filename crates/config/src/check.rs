//! [`check`]: everything about a configuration that can be found without the network.

#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod values;

use std::path::Path;

use crate::{
    ConfigErrors, Loaded, Overrides, load,
    plan::{Plan, all_errors},
};

/// Reads and validates a configuration, with the files that it names. Opens no connection and no
/// port.
///
/// # Errors
/// Fails with every error, each with the line, the key and the fix, in the order of the lines. Text
/// of the configuration in a message may have control characters; a terminal needs it escaped.
pub fn check(file: &Path, overrides: Overrides) -> Result<(Loaded, Plan), ConfigErrors> {
    let loaded = load(file, overrides).map_err(all_errors)?;
    match Plan::new(&loaded.config) {
        Ok(plan) => Ok((loaded, plan)),
        Err(errors) => Err(ConfigErrors(loaded.places.locate(errors))),
    }
}
