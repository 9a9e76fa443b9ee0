//! [`ProviderSettings`]: one provider.

use portcullis_discovery::UrlPolicy;
use portcullis_metadata::{Issuer, Secret};
use url::Url;

use crate::ProviderKind;

/// How the application authenticates at the provider's token endpoint (RFC 6749 section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// With the `Authorization` header: `client_secret_basic`.
    Basic,
    /// With parameters of the form: `client_secret_post`.
    Post,
}

/// One provider, and the application that an operator registered there.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The name of the provider in this server: 1 to 32 lower-case letters, digits and hyphens. It
    /// is in the redirect URI and at the beginning of every subject, so it must not change.
    pub name: Box<str>,
    /// The kind of provider.
    pub kind: ProviderKind,
    /// The issuer. For Entra, `https://login.microsoftonline.com/TENANT/v2.0` with the identifier
    /// of the tenant; for GitHub, `https://github.com` or the URL of a GitHub Enterprise Server.
    pub issuer: Issuer,
    /// Entra only: the tenants whose users may sign in, if there are several. The issuer is then
    /// that of one of them.
    pub tenants: Vec<Box<str>>,
    /// The `client_id` of the application.
    pub client_id: Box<str>,
    /// The secret of the application.
    pub client_secret: Secret,
    /// The scopes to request. Empty for those of the kind.
    pub scopes: Vec<Box<str>>,
    /// How the application authenticates at the token endpoint, if the provider accepts only one
    /// method for it. The default comes from the kind and the provider's metadata.
    pub client_authentication: Option<ClientAuthentication>,
    /// Replaces the API of GitHub, for an imitation. The default is derived from the issuer.
    pub api_url: Option<Url>,
    /// Which URLs may be fetched.
    pub url_policy: UrlPolicy,
}

impl ProviderSettings {
    /// The maximum number of [`Self::tenants`], because each has its own keys.
    pub const MAX_TENANTS: usize = 256;

    /// Returns the settings of an application, with the defaults for everything else.
    pub fn new(
        name: impl Into<Box<str>>,
        kind: ProviderKind,
        issuer: Issuer,
        client_id: impl Into<Box<str>>,
        client_secret: Secret,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            issuer,
            tenants: Vec::new(),
            client_id: client_id.into(),
            client_secret,
            scopes: Vec::new(),
            client_authentication: None,
            api_url: None,
            url_policy: UrlPolicy::Operator,
        }
    }
}
