#![doc = include_str!("../README.md")]

mod admin;
pub mod administration;
mod backend;
mod background;
mod broker;
mod connection;
#[cfg_attr(not(feature = "dev"), path = "demo/without_dev.rs")]
mod demo;
mod dry_run;
mod error;
mod examination;
mod forwarded_headers;
mod health;
mod limits;
mod observers;
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
pub use persistence::Persistence;
pub use portcullis_discovery::Product;
pub use reload::{ConfigSource, log_warnings};
pub use router::local_response::{REASON_CODES, REFUSED};
pub use server::{Listeners, Program, Server};
pub use signals::{Signals, shutdown as shutdown_signal};
