//! Sign-ins with each kind of provider over a scripted network.

mod application;
mod entra;
mod github;
mod hostile;
mod kinds;
mod logout;
mod open_id;
mod refresh;
