#![doc = include_str!("../README.md")]

mod end_reason;
mod ends;
mod error;
mod fault_injection;
mod identifier;
mod journal;
mod last_uses;
mod live_session;
mod observer;
mod owner;
mod peer_sessions;
mod scope;
mod settings;
mod store;

pub use end_reason::EndReason;
pub use error::{KeyError, ReservationError, ResolveError};
pub use identifier::{Identifier, SessionKey, SessionKeys};
pub use journal::{
    EndConfirmation, EndExtent, EndTicket, LastUse, NotRecorded, SessionEnd, SessionJournal,
};
pub use live_session::{LogHash, Session};
pub use observer::SessionObserver;
pub use owner::Owner;
pub use peer_sessions::AnnouncedSession;
pub use scope::{EndScope, ScopeId, SessionTarget};
pub use settings::SessionSettings;
pub use store::{
    CapacityPermit, EndRecord, EndedScope, InUse, ListedSession, Reservation, SessionPage,
    SessionStore, SessionStoreBuilder,
};
