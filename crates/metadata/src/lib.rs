//! OAuth wire types for protected resources: documents, challenges, claims and keys, parsed and built
//! without any I/O.

mod access_token;
mod clock;
mod issuer;
mod resource_uri;
mod scopes;

pub use access_token::AccessToken;
pub use clock::{Clock, SystemClock, UnixTime};
pub use issuer::{Issuer, IssuerError, is_https_or_loopback_http, is_loopback};
pub use resource_uri::{ResourceUri, ResourceUriError};
pub use scopes::{Scopes, ScopesError};
