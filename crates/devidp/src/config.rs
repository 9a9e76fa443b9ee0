//! [`Config`]: the settings, and what follows from them.

use std::{sync::Arc, time::Duration};

use portcullis_authorization_server::client::GrantType;
use portcullis_metadata::{Issuer, UnixTime};
use url::Url;

use crate::{
    providers::profile::Profile, server::endpoint::Endpoint, settings::DevIdpSettings,
    tables::Table,
};

/// The settings, the behaviour of the imitated provider, and the issuer. They do not change while
/// the server runs.
pub(crate) struct Config {
    pub(crate) settings: DevIdpSettings,
    /// The behaviour of the imitated provider.
    pub(crate) profile: &'static Profile,
    pub(crate) issuer: Issuer,
    /// The issuer in access tokens. Some providers have another one in their metadata.
    pub(crate) token_issuer: String,
}

impl Config {
    pub(crate) fn new(settings: DevIdpSettings, issuer: Issuer) -> Self {
        let profile = settings.profile();
        let token_issuer = match profile.token_issuer_path {
            Some(path) => format!("{}{path}", origin(&issuer)),
            None => issuer.as_str().to_owned(),
        };
        Self {
            settings,
            profile,
            issuer,
            token_issuer,
        }
    }

    /// Returns the origin of the issuer, without a trailing slash.
    pub(crate) fn origin(&self) -> String {
        origin(&self.issuer)
    }

    pub(crate) fn path(&self, endpoint: Endpoint) -> String {
        endpoint.path(&self.settings.issuer_path)
    }

    pub(crate) fn url(&self, endpoint: Endpoint) -> Url {
        let mut url = self.issuer.url().clone();
        url.set_path(&self.path(endpoint));
        url
    }

    /// Returns whether the server supports a grant type.
    pub(crate) fn supports(&self, grant_type: GrantType) -> bool {
        self.settings.grant_types().contains(&grant_type)
    }

    pub(crate) fn now(&self) -> UnixTime {
        self.settings.clock.now()
    }

    /// Creates a table whose values expire by the clock of the settings.
    pub(crate) fn table<V>(&self, capacity: usize, lifetime: Duration) -> Table<V> {
        Table::new(capacity, lifetime, Arc::clone(&self.settings.clock))
    }
}

fn origin(issuer: &Issuer) -> String {
    issuer.url().origin().ascii_serialization()
}
