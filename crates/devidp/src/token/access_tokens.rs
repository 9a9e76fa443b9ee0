//! [`AccessTokens`]: issues, verifies and revokes access tokens.

use std::sync::Arc;

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Grant, IssuedToken, TokenVerifier,
};
use portcullis_jose::CompactJws;
use portcullis_metadata::{AccessToken, AccessTokenClaims, Scopes};

use crate::{
    config::Config,
    handle::Handle,
    keys::Keys,
    providers::profile::TokenFormat,
    tables::{EVICTING_CAPACITY, LASTING_CAPACITY, Table, TableFull},
    token::claims,
};

/// The access tokens of this server: JWTs, or opaque tokens if the imitated provider issues these.
pub(crate) struct AccessTokens {
    config: Arc<Config>,
    keys: Arc<Keys>,
    /// The opaque tokens, by handle.
    opaque: Table<OpaqueToken>,
    /// The `jti` of each revoked token.
    revoked: Table<()>,
}

struct OpaqueToken {
    handle: Handle,
    /// The claims as JSON.
    payload: Vec<u8>,
}

/// The maximum size of a presented token in bytes.
const MAX_TOKEN: usize = 16 * 1024;

impl AccessTokens {
    pub(crate) fn new(config: Arc<Config>, keys: Arc<Keys>) -> Self {
        let lifetime = config.settings.access_token_lifetime;
        let opaque = config.table(EVICTING_CAPACITY, lifetime);
        let revoked = config.table(LASTING_CAPACITY, lifetime);
        Self {
            config,
            keys,
            opaque,
            revoked,
        }
    }

    /// Issues an access token for a session with some of its scopes. `key` is the thumbprint of the
    /// DPoP key, if any.
    pub(super) fn issue(
        &self,
        grant: &Grant,
        scopes: &Scopes,
        key: Option<&str>,
    ) -> Result<AccessToken, ErrorResponse> {
        let signing_failed = |error: &(dyn std::error::Error + 'static)| {
            tracing::error!(error, "cannot sign an access token");
            ErrorResponse::new(ErrorCode::ServerError, "the token could not be signed")
        };
        let claims = claims::create(&self.config, grant, scopes, key)?;
        let payload = serde_json::to_vec(&claims).map_err(|error| signing_failed(&error))?;
        match self.config.profile.token_format {
            TokenFormat::Opaque(prefix) => self.issue_opaque(prefix, payload),
            TokenFormat::OpaqueWithoutAudience if grant.audience.is_none() => {
                self.issue_opaque("", payload)
            }
            TokenFormat::OpaqueWithoutAudience | TokenFormat::Jwt => {
                let settings = &self.config.settings;
                let keys = self.keys.current();
                let key = keys.signing_key(settings.signing_algorithm);
                let token = key.sign(settings.token_header_type.as_str(), &payload);
                token
                    .map(AccessToken::new)
                    .map_err(|error| signing_failed(&error))
            }
        }
    }

    /// Stores the claims, and returns a random token with this prefix.
    fn issue_opaque(&self, prefix: &str, payload: Vec<u8>) -> Result<AccessToken, ErrorResponse> {
        let handle = Handle::generate()?;
        let token = AccessToken::new(format!("{prefix}{}", handle.as_str()));
        self.opaque.insert(
            handle.id(),
            OpaqueToken {
                handle: handle.clone(),
                payload,
            },
        );
        Ok(token)
    }

    /// Returns the claims of an opaque token as JSON.
    fn find_opaque(&self, token: &str) -> Option<Vec<u8>> {
        let presented = match self.config.profile.token_format {
            TokenFormat::Jwt => return None,
            TokenFormat::Opaque(prefix) => token.strip_prefix(prefix)?,
            TokenFormat::OpaqueWithoutAudience => token,
        };
        let presented = Handle::parse(presented)?;
        self.opaque.read(presented.id(), |token| {
            presented
                .matches(&token.handle)
                .then(|| token.payload.clone())
        })?
    }

    /// Revokes the token with this identifier. Fails if the table of revoked tokens is full.
    pub(crate) fn revoke(&self, id: &str) -> Result<(), TableFull> {
        self.revoked.insert_new(id, ()).map(drop)
    }

    /// Returns whether a token was revoked. A token without an identifier, which is never issued,
    /// counts as revoked.
    pub(crate) fn is_revoked(&self, id: Option<&str>) -> bool {
        id.is_none_or(|id| self.revoked.contains(id))
    }
}

impl TokenVerifier for AccessTokens {
    /// Returns `None` if the token was not issued by this process or has expired.
    fn verify(&self, token: &str) -> Option<IssuedToken> {
        let claims = match self.find_opaque(token) {
            Some(payload) => AccessTokenClaims::parse(&payload).ok()?,
            None => {
                let token = CompactJws::parse(token, MAX_TOKEN).ok()?;
                // The same keys sign identity assertions, which are not access tokens.
                token
                    .header()
                    .typ()
                    .filter(|typ| *typ == self.config.settings.token_header_type.as_str())?;
                let keys = self.keys.current();
                let payload = keys.verifying.verify(&token).ok()?;
                AccessTokenClaims::parse(payload.bytes()).ok()?
            }
        };
        // ID tokens are signed with the same keys and have the same type, but no identifier.
        let is_valid = claims::token_id(&claims).is_some()
            && claims.exp.is_some_and(|end| self.config.now() < end);
        is_valid.then(|| IssuedToken {
            id: claims::token_id(&claims).map(Box::from),
            client_id: claims::client_id(&claims).unwrap_or_default().into(),
            grant_id: claims::session_id(&claims).map(Box::from),
            claims,
        })
    }
}
