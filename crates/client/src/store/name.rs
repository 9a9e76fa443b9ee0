use portcullis_metadata::{Issuer, syntax::hexadecimal};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::{ResourceToken, token::resource_token::is_resource};

/// The name of an entry: its type and hashes, so that no URL becomes part of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name(pub(super) String);

impl Name {
    /// The prefix of the names of all tokens.
    pub(super) const TOKENS: &str = "token-";
    /// The prefix of the names of all registrations.
    pub(super) const CLIENTS: &str = "client-";
    /// The prefix of the names of all client bindings.
    const CLIENT_ISSUERS: &str = "issuer-of-client-";

    /// Tokens for one resource share an entry, except tokens that were obtained for another URL
    /// than the resource's: each of these URLs has its own entry.
    pub(super) fn token(token: &ResourceToken) -> Self {
        let issuer = token.issuer().as_str();
        let resource = token.resource();
        let own = match token
            .start_url()
            .filter(|start| !is_resource(resource, start))
        {
            Some(start) => hash(&[issuer, resource.as_str(), start.url().as_str()]),
            None => hash(&[issuer, resource.as_str()]),
        };
        Self(format!("{}{own}", Self::tokens_of(resource.url())))
    }

    /// The prefix of the names of all tokens for an origin.
    pub(super) fn tokens_of(url: &Url) -> String {
        format!(
            "{}{}-",
            Self::TOKENS,
            hash(&[&url.origin().ascii_serialization()])
        )
    }

    /// A registration is stored by its redirect URI, or without one if the user entered it. One
    /// that is used for a single start URL has a separate entry.
    pub(super) fn client(issuer: &Issuer, redirect: Option<&Url>, only_for: Option<&Url>) -> Self {
        let own = redirect.map_or_else(
            || "by-hand".to_owned(),
            |redirect| hash(&[redirect.as_str()]),
        );
        let only_for =
            only_for.map_or_else(String::new, |start| format!("-{}", hash(&[start.as_str()])));
        Self(format!("{}{own}{only_for}", Self::clients_of(issuer)))
    }

    /// The prefix of the names of all registrations at an issuer.
    pub(super) fn clients_of(issuer: &Issuer) -> String {
        format!("{}{}-", Self::CLIENTS, hash(&[issuer.as_str()]))
    }

    /// The authorization server of a pre-registered client at a start URL.
    pub(super) fn client_issuer(client_id: &str, start: &Url) -> Self {
        Self(format!(
            "{}{}",
            Self::CLIENT_ISSUERS,
            hash(&[start.as_str(), client_id])
        ))
    }

    /// Whether a name or prefix is that of a registration, or of the authorization server of a
    /// pre-registered client.
    pub(super) fn is_client(name: &str) -> bool {
        name.starts_with(Self::CLIENTS) || name.starts_with(Self::CLIENT_ISSUERS)
    }

    /// An entry that is never written.
    pub(super) fn probe() -> Self {
        Self("probe".to_owned())
    }

    /// The entry that is locked during a sign-in, and never written.
    pub(super) fn sign_in(start: &Url) -> Self {
        Self(format!("sign-in-{}", hash(&[start.as_str()])))
    }
}

/// The first 96 bits of a hash of the parts, as hexadecimal digits. They are enough to distinguish
/// entries; the content of an entry is checked after it is read.
fn hash(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        // No part has a line feed, except that the last one can.
        digest.update(part);
        digest.update("\n");
    }
    hexadecimal(&digest.finalize()[..12])
}
