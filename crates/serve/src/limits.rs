//! The limits of clients and of open files, and the exchange of counts with other replicas.

pub(crate) mod exchange;
pub(crate) mod open_files;
pub(crate) mod registry;
pub(crate) mod shared;
