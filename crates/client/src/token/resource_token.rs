//! [`ResourceToken`]: an access token and the URLs it may be sent to.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, header};
use portcullis_discovery::ResourceMatch;
use portcullis_metadata::{
    AccessToken, Issuer, ResourceUri, Scopes, Secret, UnixTime, authorization::TokenResponse,
};
use url::{Origin, Url};
use zeroize::Zeroizing;

use crate::{
    ClientError, StartUrl,
    scope_limit::within_limit,
    token::dpop::{self, DpopBinding},
};

/// An access token and the URLs to which it can be sent. Redacted in Debug, zeroized when dropped.
pub struct ResourceToken(Parts);

/// The fields of a token, which are stored.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) access_token: AccessToken,
    pub(crate) scheme: Scheme,
    pub(crate) refresh_token: Option<Secret>,
    /// The only origin to which it is sent.
    pub(crate) origin: Origin,
    /// The URL for which it was obtained. None in entries of earlier versions.
    pub(crate) start: Option<StartUrl>,
    /// The authorization server.
    pub(crate) issuer: Issuer,
    /// The resource for which it was requested.
    pub(crate) resource: ResourceUri,
    /// Whether it was requested without `resource`, and is refreshed without it.
    pub(crate) is_unbound: bool,
    /// The client to which it was issued. Only that client can refresh it.
    pub(crate) client_id: Option<String>,
    /// The requested scopes.
    pub(crate) asked: Scopes,
    /// As [`ResourceToken::scopes`].
    pub(crate) granted: Option<Scopes>,
    /// When it was obtained.
    pub(crate) obtained: UnixTime,
    /// When it expires. `None` if that is unknown.
    pub(crate) expires: Option<UnixTime>,
}

/// The authentication scheme of a token.
#[derive(Clone)]
pub(crate) enum Scheme {
    /// RFC 6750: every holder can use the token.
    Bearer,
    /// RFC 9449: a request needs a proof by the key to which the token is bound.
    Dpop(Arc<DpopBinding>),
}

/// What a token was requested for, and by whom.
pub(crate) struct TokenRequestContext<'a> {
    /// The URL for which it was requested.
    pub(crate) start: &'a StartUrl,
    /// The authorization server.
    pub(crate) issuer: &'a Issuer,
    /// The resource for which it was requested.
    pub(crate) resource: &'a ResourceUri,
    /// Whether the requests had no `resource`.
    pub(crate) is_unbound: bool,
    /// The client that requested it.
    pub(crate) client_id: Option<&'a str>,
    /// The requested scopes. They are granted unless the response has others (RFC 6749 section
    /// 5.1).
    pub(crate) asked: &'a Scopes,
    /// The key to which the token must be bound.
    pub(crate) binding: Option<Arc<DpopBinding>>,
}

/// Returns how long before its expiry a token with this lifetime is renewed: 60 s, or a fifth of
/// the lifetime if that is shorter.
pub(crate) fn renewal_margin(lifetime: Duration) -> Duration {
    (lifetime / 5).min(Duration::from_secs(60))
}

impl ResourceToken {
    /// Creates the token of a response. Fails with [`ClientError::UnsupportedTokenType`] when it is
    /// bound to a key and should not be, or the other way round.
    pub(crate) fn new(
        response: TokenResponse,
        context: TokenRequestContext<'_>,
        now: UnixTime,
    ) -> Result<Self, ClientError> {
        let scheme = scheme(&response, context.binding)?;
        let asked = || (!context.asked.is_empty()).then(|| context.asked.clone());
        Ok(Self(Parts {
            access_token: response.access_token,
            scheme,
            refresh_token: response.refresh_token,
            origin: context.start.url().origin(),
            start: Some(context.start.clone()),
            issuer: context.issuer.clone(),
            resource: context.resource.clone(),
            is_unbound: context.is_unbound,
            client_id: context.client_id.map(str::to_owned),
            asked: context.asked.clone(),
            granted: response.scope.as_deref().map_or_else(asked, granted_scopes),
            obtained: now,
            expires: expiry(response.expires_in, now),
        }))
    }

    /// The token that replaces this one. Members that the response lacks are as requested, else
    /// unchanged (RFC 6749 section 6). Fails as [`new`](Self::new) does.
    pub(crate) fn refreshed(
        &self,
        response: TokenResponse,
        scopes: Option<&Scopes>,
        now: UnixTime,
    ) -> Result<Self, ClientError> {
        let scheme = scheme(&response, self.binding())?;
        let held = self.0.clone();
        let requested = scopes.cloned().or(held.granted);
        Ok(Self(Parts {
            access_token: response.access_token,
            scheme,
            refresh_token: response.refresh_token.or(held.refresh_token),
            granted: response.scope.as_deref().map_or(requested, granted_scopes),
            obtained: now,
            expires: expiry(response.expires_in, now),
            ..held
        }))
    }

    /// The same token without its refresh token, which has become invalid.
    pub(crate) fn without_refresh(&self) -> Self {
        Self(Parts {
            refresh_token: None,
            ..self.0.clone()
        })
    }

    /// Restores a stored token.
    pub(crate) fn from_parts(parts: Parts) -> Self {
        Self(parts)
    }

    /// The fields to store.
    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }

    /// The `Authorization` header for a request to `url`, or None if the token must not be sent
    /// there ([`is_for`](Self::is_for)).
    ///
    /// A DPoP-bound token ([`is_dpop_bound`](Self::is_dpop_bound)) also needs a proof, which
    /// [`RequestAuthorization::authorize`](crate::RequestAuthorization::authorize) adds.
    pub fn authorization_for(&self, url: &Url) -> Option<HeaderValue> {
        StartUrl::new(url.clone())
            .is_ok_and(|url| self.is_for(&url))
            .then(|| self.authorization())
            .flatten()
    }

    fn authorization(&self) -> Option<HeaderValue> {
        let scheme = match self.0.scheme {
            Scheme::Bearer => "Bearer",
            Scheme::Dpop(_) => "DPoP",
        };
        authorization(scheme, &self.0.access_token)
    }

    /// Sets the headers of a request to `url`. Removes them if `url` does not have the resource's
    /// origin: the caller checks its path. Fails when the proof of a bound token cannot be created.
    pub(crate) fn authorize(
        &self,
        method: &Method,
        url: &Url,
        now: UnixTime,
        headers: &mut HeaderMap,
    ) -> Result<(), ClientError> {
        headers.remove(dpop::PROOF);
        let is_same_origin = url.origin() == self.0.origin && StartUrl::new(url.clone()).is_ok();
        let Some(value) = self.authorization().filter(|_| is_same_origin) else {
            headers.remove(header::AUTHORIZATION);
            return Ok(());
        };
        headers.insert(header::AUTHORIZATION, value);
        if let Scheme::Dpop(binding) = &self.0.scheme {
            let proof = binding.proof(method, url, Some(self.0.access_token.secret()), now)?;
            headers.insert(dpop::PROOF, proof);
        }
        Ok(())
    }

    /// The access token, for a caller that sends it itself. It must be sent only to its resource.
    pub fn access_token(&self) -> &AccessToken {
        &self.0.access_token
    }

    /// The refresh token, if the server issued one.
    pub fn refresh_token(&self) -> Option<&Secret> {
        self.0.refresh_token.as_ref()
    }

    /// The authorization server that issued it.
    pub fn issuer(&self) -> &Issuer {
        &self.0.issuer
    }

    /// The resource for which it was requested.
    pub fn resource(&self) -> &ResourceUri {
        &self.0.resource
    }

    /// The URL for which it was obtained. None for a token that an earlier version stored.
    pub fn start_url(&self) -> Option<&StartUrl> {
        self.0.start.as_ref()
    }

    /// Whether it can be used for `start`: the URL for which it was obtained, or its resource's own
    /// URL (one trailing slash aside). Another path of the same origin can belong to another party
    /// and needs its own sign-in.
    pub fn is_for(&self, start: &StartUrl) -> bool {
        let is_own = self.start_url() == Some(start);
        self.0.origin == start.url().origin() && (is_own || is_resource(self.resource(), start))
    }

    /// The client to which it was issued, if the client has an identifier.
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// The granted scopes: those of the response, or those of the request if the response has none.
    /// None if there are none, or those of the response are not valid or more than 1,000.
    pub fn scopes(&self) -> Option<&Scopes> {
        self.0.granted.as_ref()
    }

    /// When it was obtained.
    pub fn obtained_at(&self) -> UnixTime {
        self.0.obtained
    }

    /// When it expires, if the server returned that.
    pub fn expires_at(&self) -> Option<UnixTime> {
        self.0.expires
    }

    /// Whether it has expired. False if its expiry is unknown.
    pub fn is_expired(&self, now: UnixTime) -> bool {
        self.0.expires.is_some_and(|end| end <= now)
    }

    /// Whether it is bound to a key (DPoP, RFC 9449).
    pub fn is_dpop_bound(&self) -> bool {
        matches!(self.0.scheme, Scheme::Dpop(_))
    }

    /// Whether it should be refreshed before it is used again. False if its expiry is unknown.
    pub(crate) fn is_due(&self, now: UnixTime) -> bool {
        let due = |end: UnixTime| {
            end.saturating_sub(renewal_margin(
                end.saturating_duration_since(self.0.obtained),
            ))
        };
        self.0.expires.is_some_and(|end| now >= due(end))
    }

    /// Whether two tokens have the same access token.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.access_token == other.0.access_token
    }

    /// Whether it was requested without `resource`.
    pub(crate) fn is_unbound(&self) -> bool {
        self.0.is_unbound
    }

    /// The requested scopes.
    pub(crate) fn asked(&self) -> &Scopes {
        &self.0.asked
    }

    /// The key to which it is bound.
    pub(crate) fn binding(&self) -> Option<Arc<DpopBinding>> {
        match &self.0.scheme {
            Scheme::Bearer => None,
            Scheme::Dpop(binding) => Some(binding.clone()),
        }
    }
}

/// Whether the resource is the start URL.
pub(crate) fn is_resource(resource: &ResourceUri, start: &StartUrl) -> bool {
    ResourceMatch::of(resource, start.url()) == Some(ResourceMatch::Same)
}

/// The `Authorization` header for a token. It is marked as sensitive, so that HTTP libraries do not
/// show it.
pub(crate) fn authorization(scheme: &str, token: &AccessToken) -> Option<HeaderValue> {
    let text = Zeroizing::new(format!("{scheme} {}", token.secret()));
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Checks the type of a token: a token that was requested as bound must be bound, and no other.
fn scheme(
    response: &TokenResponse,
    binding: Option<Arc<DpopBinding>>,
) -> Result<Scheme, ClientError> {
    match binding {
        None if response.is_bearer() => Ok(Scheme::Bearer),
        Some(binding) if response.token_type.eq_ignore_ascii_case("DPoP") => {
            Ok(Scheme::Dpop(binding))
        }
        _ => Err(ClientError::UnsupportedTokenType),
    }
}

/// The scopes of a response. `None` if they are not valid or too many.
fn granted_scopes(scope: &str) -> Option<Scopes> {
    Scopes::parse(scope).ok().and_then(within_limit)
}

/// When a token with a lifetime in seconds expires.
fn expiry(expires_in: Option<u64>, now: UnixTime) -> Option<UnixTime> {
    expires_in.map(|lifetime| now.saturating_add(Duration::from_secs(lifetime)))
}

impl fmt::Debug for ResourceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceToken")
            .field("issuer", &self.0.issuer)
            .field("resource", &self.0.resource)
            .field("scopes", &self.0.granted)
            .field("expires", &self.0.expires)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
