//! [`RemovedUsers`]: the users whose accounts no longer exist.

use std::time::Duration;

use crate::{
    config::Config,
    tables::{LASTING_CAPACITY, Table, TableFull},
};

/// The users that were removed while the server runs. They cannot sign in, and their tokens are
/// not valid.
pub(crate) struct RemovedUsers(Table<()>);

/// How long a user stays removed: longer than every token is valid.
const REMOVAL_LIFETIME: Duration = Duration::from_secs(366 * 24 * 60 * 60);

impl RemovedUsers {
    pub(crate) fn new(config: &Config) -> Self {
        Self(config.table(LASTING_CAPACITY, REMOVAL_LIFETIME))
    }

    /// Removes a user. Returns whether the user was not removed before.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, TableFull> {
        self.0.insert_new(name, ())
    }

    /// Restores a user. Returns whether the user was removed.
    pub(crate) fn restore(&self, name: &str) -> bool {
        self.0.remove(name)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}
