//! The users: what the server says about them, and which of them are removed.

pub(crate) mod claims;
mod removed;
mod settings;

pub(crate) use removed::RemovedUsers;
pub use settings::UserSettings;
pub(crate) use settings::check;
