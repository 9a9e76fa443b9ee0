//! The life of sessions, over sockets.

mod abandoned;
mod ending;
mod keys;
mod life;
mod limits;
mod off;
mod renewing;
