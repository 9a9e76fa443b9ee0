//! [`IdTokens`]: issues ID tokens (OpenID Connect Core section 2).

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_authorization_server::{ErrorResponse, token::GrantedTokens};
use portcullis_metadata::{AccessToken, Secret};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    authorize::codes::CODE_LIFETIME,
    config::Config,
    control::faults::{FaultKind, FaultPoint, Faults},
    keys::Keys,
    providers::profile::IdTokenContext,
    tables::{EVICTING_CAPACITY, RowAction, Table},
    token::signing,
    users,
};

/// The scope with which a client requests an ID token (OpenID Connect Core section 3.1.2.1).
pub(crate) const OPENID: &str = "openid";

/// Issues ID tokens, and keeps the nonces of the sign-ins whose codes are not exchanged yet.
pub(crate) struct IdTokens {
    config: Arc<Config>,
    keys: Arc<Keys>,
    /// The `nonce` of an authorization request, by the identifier of its grant.
    nonces: Table<Box<str>>,
}

impl IdTokens {
    pub(crate) fn new(config: Arc<Config>, keys: Arc<Keys>) -> Self {
        // A nonce is stored before its code, and must not expire before it.
        let nonces = config.table(EVICTING_CAPACITY, 2 * CODE_LIFETIME);
        Self {
            config,
            keys,
            nonces,
        }
    }

    /// Keeps the nonce of the authorization request for the first ID token of its grant.
    pub(crate) fn keep_nonce(&self, grant_id: &str, nonce: Box<str>) {
        self.nonces.insert(grant_id, nonce);
    }

    /// Issues the ID token of a token response if its scopes have `openid` and the imitated
    /// provider has ID tokens. A fault can forge it or leave it out. Only the first one of a grant
    /// has the nonce (OpenID Connect Core section 12.2).
    pub(super) fn issue(
        &self,
        granted: &GrantedTokens,
        access_token: &AccessToken,
        faults: &Faults,
    ) -> Result<Option<Secret>, ErrorResponse> {
        let Some(rewrite) = self.config.profile.id_token_claims else {
            return Ok(None);
        };
        if !granted.scopes.contains(OPENID) {
            return Ok(None);
        }
        let mut claims = self.claims(granted, access_token);
        let context = IdTokenContext {
            origin: &self.config.origin(),
            client_id: &granted.grant.client_id,
            scopes: &granted.scopes,
        };
        rewrite(&mut claims, &context);
        users::claims::retain_granted(&mut claims, &granted.scopes);
        let fault = faults.take_at(FaultPoint::IdToken);
        if fault.is_some_and(FaultKind::leaves_token_out) {
            return Ok(None);
        }
        signing::sign(&self.config, &self.keys, "JWT", claims, fault).map(Some)
    }

    fn claims(&self, granted: &GrantedTokens, access_token: &AccessToken) -> Map<String, Value> {
        let grant = &granted.grant;
        let now = self.config.now();
        let end = now.saturating_add(self.config.settings.access_token_lifetime);
        let mut claims = users::claims::of_user(&self.config.settings, &grant.subject);
        let own = [
            ("iss", json!(self.config.issuer.as_str())),
            ("aud", json!(grant.client_id)),
            ("exp", json!(end.as_secs())),
            ("iat", json!(now.as_secs())),
            ("auth_time", json!(grant.auth_time.as_secs())),
            ("sid", json!(grant.id)),
            ("at_hash", json!(half_hash(access_token))),
        ];
        claims.extend(own.map(|(name, value)| (name.to_owned(), value)));
        if let Some(nonce) = self.nonces.update(&grant.id, |nonce| {
            (std::mem::take(nonce), RowAction::Remove)
        }) {
            claims.insert("nonce".to_owned(), json!(nonce));
        }
        claims
    }
}

/// Returns the claim `at_hash`: the left half of the SHA-256 hash of an access token, because both
/// algorithms of the server use SHA-256 (OpenID Connect Core section 3.1.3.6).
fn half_hash(access_token: &AccessToken) -> String {
    let hash = Sha256::digest(access_token.secret());
    URL_SAFE_NO_PAD.encode(&hash[..hash.len() / 2])
}
