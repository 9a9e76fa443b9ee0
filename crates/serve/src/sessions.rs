//! Sessions that the server opens and ends at upstreams.

pub(super) mod events;
pub(super) mod initialize;
#[cfg(feature = "redis")]
pub(super) mod replicas;
pub(super) mod shutdown;
pub(super) mod unrecorded;
pub(super) mod upstream_end;
pub(super) mod upstreams;
#[cfg(not(feature = "redis"))]
pub(super) mod without_replicas;

#[cfg(not(feature = "redis"))]
pub(super) use self::without_replicas as replicas;
