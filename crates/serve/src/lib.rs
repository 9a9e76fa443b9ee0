#![doc = include_str!("../README.md")]

mod admin;
pub mod administration;
mod backend;
mod backend_body;
mod background;
mod connection;
#[cfg_attr(not(feature = "dev"), path = "demo/absent.rs")]
mod demo;
mod dry_run;
mod error;
mod forwarded_headers;
mod health;
mod legacy_calls;
mod limits;
mod observers;
mod own_response;
mod persistence;
mod reload;
mod replicas;
mod router;
mod server;
mod sessions;
mod shutdown;
mod signals;
mod state;
mod worker_pool;

pub use admin::AdminListener;
pub use connection::listener::{PassedListener, bind};
pub use dry_run::runnable_plan;
pub use error::ServeError;
pub use own_response::{REASON_CODES, REFUSED};
pub use persistence::Persistence;
pub use portcullis_discovery::Product;
pub use reload::ConfigSource;
pub use server::{Listeners, Program, Server};
pub use signals::{Signals, shutdown as shutdown_signal};
