//! Who the user is.

use portcullis_jose::CompactJws;
use portcullis_metadata::{Secret, UnixTime, unverified_issuer};
use portcullis_verifier::{ExpectedIdToken, IdToken, LogoutToken};
use serde_json::{Map, Value};

use super::{IdentityProvider, user_api::UserInfo};
use crate::{
    Identity, ProviderError, ProviderResponse, ProviderTokens,
    kinds::{Identifier, Protocol, UserApi},
    subject::subject,
    tenant::Tenant,
};

/// The maximum length of an ID token or a logout token in bytes, to read its issuer.
const MAX_TOKEN_BYTES: usize = 32 * 1024;
/// The maximum length of `sub`, `oid` and `sid` in bytes.
const MAX_IDENTIFIER: usize = 255;
/// Claims of the protocol, which say nothing about the user.
const PROTOCOL_CLAIMS: [&str; 14] = [
    "iss",
    "aud",
    "azp",
    "exp",
    "nbf",
    "iat",
    "jti",
    "nonce",
    "at_hash",
    "c_hash",
    "s_hash",
    "sid",
    "auth_time",
    "typ",
];

impl IdentityProvider {
    /// Says who the user of a response is. `nonce` is that of the authorization request after
    /// [`redeem`](Self::redeem), and `None` after [`refresh`](Self::refresh).
    ///
    /// The ID token is validated first. The user API is asked if the kind of provider needs it, or
    /// if a refresh returned no ID token. After a refresh, the caller must compare
    /// [`Identity::subject`] with that of the sign-in: another one ends it.
    ///
    /// # Errors
    /// Fails if the ID token or the answer of the user API is invalid, if the user is in a tenant
    /// that may not sign in, or if the provider cannot be reached.
    pub async fn identify(
        &self,
        response: &ProviderResponse,
        nonce: Option<&str>,
    ) -> Result<Identity, ProviderError> {
        let access_token = response.tokens().access_token.as_ref();
        if self.profile.protocol == Protocol::GitHub {
            return self.identify_by_user_api(access_token).await;
        }
        let Some(id_token) = response.id_token() else {
            return if nonce.is_some() || self.profile.user_api == UserApi::Never {
                Err(ProviderError::ResponseInvalid("id_token.missing"))
            } else {
                self.identify_by_user_api(access_token).await
            };
        };
        let tenant = self.tenant_of(id_token)?;
        let expected = ExpectedIdToken {
            client_id: &self.settings.client_id,
            nonce,
        };
        let verified = tenant.issuer.verify_id_token(id_token, &expected).await?;
        let mut identity = self.of_id_token(tenant, verified)?;
        if self.profile.user_api == UserApi::Always {
            self.add_user_info(&mut identity, access_token).await?;
        }
        Ok(identity)
    }

    /// Asks the user API with the stored access token, for a user without a refresh token. Returns
    /// `None` if that shows nothing: there is no access token, it has expired, or the provider has
    /// no user API that identifies the user.
    ///
    /// The claims are those of the user API alone ([`Identity::has_id_token`]).
    ///
    /// # Errors
    /// Fails with [`ProviderError::SignInEnded`] if the user API rejects the token, and with
    /// another error if it cannot be reached or its answer is invalid.
    pub async fn check_with_access_token(
        &self,
        tokens: &ProviderTokens,
    ) -> Result<Option<Identity>, ProviderError> {
        let has_expired = tokens
            .access_token_expires
            .is_some_and(|expires| expires <= self.clock.now());
        if tokens.access_token.is_none() || has_expired || self.profile.user_api == UserApi::Never {
            return Ok(None);
        }
        if self.endpoints.get().await?.user_api.is_none() {
            return Ok(None);
        }
        self.identify_by_user_api(tokens.access_token.as_ref())
            .await
            .map(Some)
    }

    /// Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). The caller
    /// must accept each `jti` once, until [`LogoutToken::expires`].
    ///
    /// # Errors
    /// Fails if the token is invalid, or cannot be verified now. GitHub sends no logout tokens, so
    /// that all are invalid.
    pub async fn verify_logout_token(&self, token: &str) -> Result<LogoutToken, ProviderError> {
        let token = Secret::new(token);
        let tenant = self.tenant_of(&token)?;
        Ok(tenant
            .issuer
            .verify_logout_token(&token, &self.settings.client_id)
            .await?)
    }

    /// Returns the issuer that must verify a token. The claim only selects it.
    fn tenant_of(&self, token: &Secret) -> Result<&Tenant, ProviderError> {
        if let [tenant] = self.tenants.as_slice() {
            return Ok(tenant);
        }
        let issuer = CompactJws::parse(token.secret(), MAX_TOKEN_BYTES)
            .map_err(|error| ProviderError::IdTokenInvalid(error.code()))
            .and_then(|jws| {
                unverified_issuer(jws.unverified_payload())
                    .map_err(|error| ProviderError::IdTokenInvalid(error.code()))
            })?;
        self.tenants
            .iter()
            .find(|tenant| Some(tenant.issuer.issuer().as_str()) == issuer.as_deref())
            .ok_or(ProviderError::TenantNotAllowed)
    }

    /// Returns the user of a verified ID token.
    fn of_id_token(&self, tenant: &Tenant, token: IdToken) -> Result<Identity, ProviderError> {
        let provider_subject = Box::from(token.subject());
        let issued_at = token.issued_at();
        let mut claims = token.into_claims();
        let subject = match (self.profile.identifier, &tenant.id) {
            (Identifier::TenantAndObject, Some(id)) => {
                if claims.get("tid").and_then(Value::as_str) != Some(id) {
                    return Err(ProviderError::TenantNotAllowed);
                }
                let object = identifier(&claims, "oid")
                    .ok_or(ProviderError::IdTokenInvalid("id_token.oid_missing"))?;
                subject(&self.settings.name, id, object)
            }
            _ => self.subject_of(&provider_subject),
        };
        let auth_time = claims
            .get("auth_time")
            .and_then(Value::as_u64)
            .map_or(issued_at, |time| UnixTime::from_secs(time).min(issued_at));
        Ok(Identity {
            subject,
            provider_subject,
            provider_session: identifier(&claims, "sid").map(Box::from),
            auth_time,
            omitted_claims: remove_omitted(&mut claims)?,
            claims: without_protocol_claims(claims),
            has_id_token: true,
        })
    }

    /// Adds what the user API knows and the ID token does not say. The answer must be about the
    /// same user.
    async fn add_user_info(
        &self,
        identity: &mut Identity,
        access_token: Option<&Secret>,
    ) -> Result<(), ProviderError> {
        let endpoints = self.endpoints.get().await?;
        let (Some(endpoint), Some(access_token)) = (&endpoints.user_api, access_token) else {
            return Ok(());
        };
        let info = match self.user_info(endpoint, access_token).await {
            // The ID token shows that the sign-in has not ended.
            Err(ProviderError::SignInEnded) => {
                return Err(ProviderError::ResponseInvalid("user_api.rejected"));
            }
            info => info?,
        };
        if identifier(&info.claims, "sub") != Some(&*identity.provider_subject) {
            return Err(ProviderError::ResponseInvalid("user_api.other_user"));
        }
        let mut claims = info.claims;
        for omitted in remove_omitted(&mut claims)? {
            if !identity.claims.contains_key(&*omitted) {
                identity.omitted_claims.push(omitted);
            }
        }
        for (name, value) in without_protocol_claims(claims) {
            let is_omitted = identity.omitted_claims.iter().any(|one| **one == *name);
            if !is_omitted {
                identity.claims.entry(name).or_insert(value);
            }
        }
        Ok(())
    }

    /// Returns the user of an access token.
    async fn identify_by_user_api(
        &self,
        access_token: Option<&Secret>,
    ) -> Result<Identity, ProviderError> {
        let endpoints = self.endpoints.get().await?;
        let (Some(endpoint), Some(access_token)) = (&endpoints.user_api, access_token) else {
            return Err(ProviderError::ResponseInvalid("id_token.missing"));
        };
        let UserInfo {
            mut claims,
            mut omitted,
        } = self.user_info(endpoint, access_token).await?;
        let provider_subject: Box<str> = identifier(&claims, "sub")
            .ok_or(ProviderError::ResponseInvalid("user_api.subject"))?
            .into();
        omitted.extend(remove_omitted(&mut claims)?);
        Ok(Identity {
            subject: self.subject_of(&provider_subject),
            provider_subject,
            provider_session: None,
            auth_time: self.clock.now(),
            claims: without_protocol_claims(claims),
            omitted_claims: omitted,
            has_id_token: false,
        })
    }

    /// Returns the subject of a user whom the issuer identifies by `sub` or a number.
    fn subject_of(&self, id: &str) -> Box<str> {
        subject(&self.settings.name, self.settings.issuer.as_str(), id)
    }
}

/// Returns a claim that is an identifier of 1 to 255 bytes.
fn identifier<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c str> {
    claims
        .get(name)
        .and_then(Value::as_str)
        .filter(|id| (1..=MAX_IDENTIFIER).contains(&id.len()))
}

/// Removes the claims that the provider replaced by a reference (OpenID Connect Core 1.0 section
/// 5.6.2), and returns their names. Entra also marks missing groups with `hasgroups`.
fn remove_omitted(claims: &mut Map<String, Value>) -> Result<Vec<Box<str>>, ProviderError> {
    let mut omitted: Vec<Box<str>> = match claims.remove("_claim_names") {
        None => Vec::new(),
        Some(Value::Object(names)) => names.keys().map(|name| name.as_str().into()).collect(),
        Some(_) => return Err(ProviderError::ResponseInvalid("claim_names")),
    };
    claims.remove("_claim_sources");
    if let Some(has_groups) = claims.remove("hasgroups")
        && has_groups != Value::Bool(false)
        && !omitted.iter().any(|name| &**name == "groups")
    {
        omitted.push("groups".into());
    }
    for name in &omitted {
        claims.remove(&**name);
    }
    Ok(omitted)
}

fn without_protocol_claims(mut claims: Map<String, Value>) -> Map<String, Value> {
    for name in PROTOCOL_CLAIMS {
        claims.remove(name);
    }
    claims
}
