//! What goes wrong around the server, and what it says and does then.

mod check;
mod issuer;
mod shutdown;
mod start;
mod upstream;
