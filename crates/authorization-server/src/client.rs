//! Clients: who they are and what they may do.

mod grant_type;
mod redirect_uri;

pub use grant_type::GrantType;
pub use redirect_uri::{RedirectUri, RedirectUriError};
