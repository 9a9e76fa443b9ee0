#![doc = include_str!("../README.md")]

mod error;
mod identifier;
mod observer;
mod owner;
mod session;
mod settings;
mod store;

pub use error::{KeyError, ReservationError, ResolveError};
pub use identifier::{Identifier, SessionKey, SessionKeys};
pub use observer::{EndReason, SessionObserver};
pub use owner::Owner;
pub use session::{LogHash, Session};
pub use settings::SessionSettings;
pub use store::{CapacityPermit, InUse, Reservation, SessionStore};
