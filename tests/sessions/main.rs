//! The life of sessions, over sockets.

mod ending;
mod evicting;
mod keys;
mod leftovers;
mod life;
mod limits;
mod off;
mod renewing;
