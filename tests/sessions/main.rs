//! The life of sessions, over sockets.

mod ending;
mod life;
mod limits;
mod off;
