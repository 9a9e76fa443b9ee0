//! Sessions that the server opens and ends at upstreams.

pub(super) mod events;
pub(super) mod initialize;
pub(super) mod shutdown;
pub(super) mod unrecorded;
pub(super) mod upstream_end;
pub(super) mod upstreams;
