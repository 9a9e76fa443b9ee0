//! Owner-bound sessions with tagged identifiers, in a bounded in-memory store.
//!
//! A session belongs to one resource and one [`Owner`]. Possession of its identifier authorizes nothing:
//! whoever comes with somebody else's identifier is answered exactly as if it had never existed, and does not
//! keep that session alive either.
//!
//! - **Identifiers** are 44 characters of base64url: 16 random bytes of the operating system's generator, the
//!   epoch of the key, and a 16-byte tag keyed over resource, owner and random bytes. A wrong tag is refused
//!   without a look into the table; a right tag that is not in the table names a session that has ended
//!   ([`ResolveError::Ended`]).
//! - **Keys** ([`SessionKeys`]) can be rotated while sessions live, and shared by replicas and restarts, so that they
//!   tell each other's ended identifiers from unknown ones.
//! - **New identifiers**: when the owner comes with other scopes, the session gets another identifier
//!   ([`InUse::rotated_identifier`]). The old one goes on resolving until 5 min after the new one's first use.
//! - **Capacity** is reserved before a session exists ([`SessionStore::reserve`]), so that no more sessions are
//!   opened than the limits allow, however many callers ask at once. At an owner's limit a new session takes the place of
//!   that owner's least recently used session that is not in use ([`EndReason::Evicted`]); when all are in use, and at the total
//!   limit, new sessions are refused. No session ends for another owner's.
//! - **Use**: a session that [`SessionStore::resolve`] returns is in use until the [`InUse`] is dropped. It is neither idle nor
//!   evicted meanwhile: taking a session into use and ending it by idle time or eviction exclude each other.
//! - **Time-outs**, idle and absolute, hold at every [`SessionStore::resolve`]; [`SessionStore::sweep`] ends the
//!   sessions that nobody asks for any more.
//! - **The observer** hears of each ended session exactly once, whatever ended it.
//!
//! Resolving allocates nothing. A session with texts of usual length takes less than 500 bytes. The crate knows
//! nothing of HTTP and starts no task.
//!
//! ```
//! use std::sync::Arc;
//!
//! use portcullis_metadata::{ResourceUri, Scopes, SystemClock};
//! use portcullis_session::{EndReason, Owner, SessionKey, SessionSettings, SessionStore, ResolveError};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = SessionSettings::new(SessionKey::random()?);
//! let store = SessionStore::new(settings, Arc::new(SystemClock::new()), Arc::new(()));
//! let resource = ResourceUri::parse("https://mcp.example.com/mcp")?;
//! let alice = Owner::Subject { issuer: "https://auth.example.com", subject: "alice", client: Some("app") };
//! let mallory = Owner::Subject { issuer: "https://auth.example.com", subject: "mallory", client: Some("app") };
//!
//! let scopes = Scopes::parse("tools:read")?;
//! let reservation = store.reserve(&resource, alice, &scopes)?;
//! let session = reservation.open(Box::from(*b"the backend's own id"), None)?;
//! let identifier = session.identifier();
//! let identifier = identifier.as_bytes();
//!
//! assert_eq!(store.resolve(&resource, alice, &scopes, identifier)?.backend_id(), b"the backend's own id");
//! assert_eq!(store.resolve(&resource, mallory, &scopes, identifier).unwrap_err(), ResolveError::Unknown);
//!
//! store.end(&session, EndReason::Deleted);
//! assert_eq!(store.resolve(&resource, alice, &scopes, identifier).unwrap_err(), ResolveError::Ended);
//! # Ok(())
//! # }
//! ```

mod by_last_use;
mod capacity;
mod error;
mod identifier;
mod in_use;
mod key;
mod keys;
mod lineage;
mod observer;
mod owner;
mod session;
mod settings;
mod store;
mod use_state;

pub use error::{KeyError, ReservationError, ResolveError};
pub use identifier::Identifier;
pub use in_use::InUse;
pub use key::SessionKey;
pub use keys::SessionKeys;
pub use observer::{EndReason, SessionObserver};
pub use owner::Owner;
pub use session::{LogHash, Session};
pub use settings::SessionSettings;
pub use store::{CapacityPermit, Reservation, SessionStore};
