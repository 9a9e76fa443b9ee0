use std::sync::Arc;

use portcullis_metadata::Secret;

use crate::redirect::RedirectUri;

/// A registered client.
pub(crate) struct Client {
    pub(crate) name: Option<Box<str>>,
    pub(crate) redirect_uris: Vec<RedirectUri>,
    pub(crate) authentication: ClientAuthentication,
}

/// How a client proves itself at the token endpoint (RFC 7591 section 2).
pub(crate) enum ClientAuthentication {
    /// A public client.
    None,
    /// `client_secret_basic`.
    SecretBasic(Secret),
    /// `client_secret_post`.
    SecretPost(Secret),
}

/// A client's row in the table of clients.
pub(crate) struct Registered {
    pub(crate) client: Arc<Client>,
    /// Whether it ever obtained a code. A client that did is not put out for a newer one.
    pub(crate) used: bool,
}

impl ClientAuthentication {
    pub(crate) const NAMES: [&'static str; 3] = ["none", "client_secret_basic", "client_secret_post"];
}
