//! Sessions that the server opens and ends at upstreams, and the keys of session identifiers.

pub(super) mod initialize;
pub(super) mod kept;
pub(super) mod keys;
pub(super) mod shutdown;
pub(super) mod upstream_end;
