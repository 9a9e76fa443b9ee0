//! [`ResourceToken`]: an access token and the URLs it may be sent to.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, header};
use portcullis_discovery::ResourceMatch;
use portcullis_metadata::{AccessToken, Issuer, ResourceUri, Scopes, Secret, TokenResponse, UnixTime};
use url::{Origin, Url};
use zeroize::Zeroizing;

use crate::{
    ClientError, StartUrl,
    token::dpop::{self, DpopBinding},
};

/// An access token and the one resource it may be sent to. Redacted in Debug, wiped when dropped.
pub struct ResourceToken(Parts);

/// What a token is made of.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) access_token: AccessToken,
    pub(crate) scheme: Scheme,
    pub(crate) refresh_token: Option<Secret>,
    pub(crate) origin: Origin,
    /// The URL that it was obtained for. Missing in what was stored before that was written down.
    pub(crate) start: Option<StartUrl>,
    pub(crate) issuer: Issuer,
    pub(crate) resource: ResourceUri,
    /// Whether it was requested without `resource`, and is refreshed without it.
    pub(crate) is_unbound: bool,
    /// The client that it was given to, which alone can refresh it.
    pub(crate) client_id: Option<String>,
    /// What was asked for.
    pub(crate) asked: Scopes,
    /// What was granted, where the answer or the request named anything.
    pub(crate) granted: Option<Scopes>,
    pub(crate) obtained: UnixTime,
    pub(crate) expires: Option<UnixTime>,
}

/// How a token is sent.
#[derive(Clone)]
pub(crate) enum Scheme {
    /// RFC 6750: whoever has it may use it.
    Bearer,
    /// RFC 9449: with a proof by the key that it is bound to.
    Dpop(Arc<DpopBinding>),
}

/// What a token is for.
pub(crate) struct Purpose<'a> {
    pub(crate) start: &'a StartUrl,
    pub(crate) issuer: &'a Issuer,
    pub(crate) resource: &'a ResourceUri,
    /// Whether the requests had no `resource`.
    pub(crate) is_unbound: bool,
    pub(crate) client_id: Option<&'a str>,
    /// What was asked for, which is what was granted unless the answer says otherwise (RFC 6749 section 5.1).
    pub(crate) asked: &'a Scopes,
    /// The key that the token was asked to be bound to.
    pub(crate) binding: Option<Arc<DpopBinding>>,
}

/// A token is refreshed this long before its end, or when a fifth of its life is left, whichever is later.
const AHEAD: Duration = Duration::from_secs(60);

impl ResourceToken {
    pub(crate) fn new(response: TokenResponse, purpose: Purpose<'_>, now: UnixTime) -> Result<Self, ClientError> {
        let scheme = scheme(&response, purpose.binding)?;
        let asked = || (!purpose.asked.is_empty()).then(|| purpose.asked.clone());
        Ok(Self(Parts {
            access_token: response.access_token,
            scheme,
            refresh_token: response.refresh_token,
            origin: purpose.start.url().origin(),
            start: Some(purpose.start.clone()),
            issuer: purpose.issuer.clone(),
            resource: purpose.resource.clone(),
            is_unbound: purpose.is_unbound,
            client_id: purpose.client_id.map(str::to_owned),
            asked: purpose.asked.clone(),
            granted: response.scope.map_or_else(asked, |granted| Scopes::parse(&granted).ok()),
            obtained: now,
            expires: end(response.expires_in, now),
        }))
    }

    /// The token that took this one's place: what the answer does not name stays as it was (RFC 6749 section 6).
    pub(crate) fn refreshed(&self, response: TokenResponse, now: UnixTime) -> Result<Self, ClientError> {
        let scheme = scheme(&response, self.binding())?;
        let held = self.0.clone();
        Ok(Self(Parts {
            access_token: response.access_token,
            scheme,
            refresh_token: response.refresh_token.or(held.refresh_token),
            granted: response.scope.map_or(held.granted, |granted| Scopes::parse(&granted).ok()),
            obtained: now,
            expires: end(response.expires_in, now),
            ..held
        }))
    }

    /// The same token, once its refresh token is worth nothing.
    pub(crate) fn without_refresh(&self) -> Self {
        Self(Parts { refresh_token: None, ..self.0.clone() })
    }

    pub(crate) fn from_parts(parts: Parts) -> Self {
        Self(parts)
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }

    /// The `Authorization` header for a request to `url`, or none when `url` is not of the resource's origin: the
    /// token goes nowhere else.
    ///
    /// A token that is bound to a key ([`is_dpop_bound`](Self::is_dpop_bound)) is of no use without a proof, which
    /// [`RequestAuthorization::authorize`](crate::RequestAuthorization::authorize) adds.
    pub fn authorization_for(&self, url: &Url) -> Option<HeaderValue> {
        if url.origin() != self.0.origin || StartUrl::new(url.clone()).is_err() {
            return None;
        }
        let scheme = match self.0.scheme {
            Scheme::Bearer => "Bearer",
            Scheme::Dpop(_) => "DPoP",
        };
        authorization(scheme, &self.0.access_token)
    }

    /// Sets what a request to `url` needs, or nothing when `url` is not of the resource's origin.
    pub(crate) fn authorize(
        &self,
        method: &Method,
        url: &Url,
        now: UnixTime,
        headers: &mut HeaderMap,
    ) -> Result<(), ClientError> {
        headers.remove(dpop::PROOF);
        let Some(value) = self.authorization_for(url) else {
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

    /// The token itself, for a caller that sends it on its own. It is for the resource alone.
    pub fn access_token(&self) -> &AccessToken {
        &self.0.access_token
    }

    /// What gets the next token, where the server gave it.
    pub fn refresh_token(&self) -> Option<&Secret> {
        self.0.refresh_token.as_ref()
    }

    /// Who issued it.
    pub fn issuer(&self) -> &Issuer {
        &self.0.issuer
    }

    /// What it was asked for: the `resource` of both requests.
    pub fn resource(&self) -> &ResourceUri {
        &self.0.resource
    }

    /// The URL that it was obtained for. None for a token that was stored before that was written down.
    pub fn start_url(&self) -> Option<&StartUrl> {
        self.0.start.as_ref()
    }

    /// Whether it may be used for what starts from `start`: the URL that it was obtained for, or its resource's own URL,
    /// one trailing slash aside. Another path of the same origin may belong to somebody else and needs its own sign-in.
    pub fn is_for(&self, start: &StartUrl) -> bool {
        let is_own = self.start_url() == Some(start);
        self.0.origin == start.url().origin() && (is_own || is_resource(self.resource(), start))
    }

    /// The client that it was given to, where the client has a name.
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// The scopes granted, where the answer or the request named any.
    pub fn scopes(&self) -> Option<&Scopes> {
        self.0.granted.as_ref()
    }

    /// When it was got.
    pub fn obtained_at(&self) -> UnixTime {
        self.0.obtained
    }

    /// When it ends, where the server said so.
    pub fn expires_at(&self) -> Option<UnixTime> {
        self.0.expires
    }

    /// Whether it has ended by what the server said.
    pub fn is_expired(&self, now: UnixTime) -> bool {
        self.0.expires.is_some_and(|end| end <= now)
    }

    /// Whether it is bound to a key (DPoP, RFC 9449).
    pub fn is_dpop_bound(&self) -> bool {
        matches!(self.0.scheme, Scheme::Dpop(_))
    }

    /// Whether it should be refreshed before it is used again. Without a known end it never is.
    pub(crate) fn is_due(&self, now: UnixTime) -> bool {
        self.0
            .expires
            .is_some_and(|end| now >= end.saturating_sub(AHEAD.min(end.saturating_duration_since(self.0.obtained) / 5)))
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.access_token == other.0.access_token
    }

    /// Returns whether it was requested without `resource`.
    pub(crate) fn is_unbound(&self) -> bool {
        self.0.is_unbound
    }

    pub(crate) fn asked(&self) -> &Scopes {
        &self.0.asked
    }

    pub(crate) fn binding(&self) -> Option<Arc<DpopBinding>> {
        match &self.0.scheme {
            Scheme::Bearer => None,
            Scheme::Dpop(binding) => Some(binding.clone()),
        }
    }
}

/// Whether the resource is the very thing at `start`.
pub(crate) fn is_resource(resource: &ResourceUri, start: &StartUrl) -> bool {
    ResourceMatch::of(resource, start.url()) == Some(ResourceMatch::Same)
}

/// The header for a token, marked so that no HTTP library shows it.
pub(crate) fn authorization(scheme: &str, token: &AccessToken) -> Option<HeaderValue> {
    let text = Zeroizing::new(format!("{scheme} {}", token.secret()));
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A token that was asked to be bound is refused when it is not, and the other way round.
fn scheme(response: &TokenResponse, binding: Option<Arc<DpopBinding>>) -> Result<Scheme, ClientError> {
    match binding {
        None if response.is_bearer() => Ok(Scheme::Bearer),
        Some(binding) if response.token_type.eq_ignore_ascii_case("DPoP") => Ok(Scheme::Dpop(binding)),
        _ => Err(ClientError::UnsupportedTokenType),
    }
}

fn end(expires_in: Option<u64>, now: UnixTime) -> Option<UnixTime> {
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
mod tests {
    use super::*;

    fn token(answer: &str) -> Result<ResourceToken, ClientError> {
        let purpose = Purpose {
            start: &StartUrl::parse("https://mcp.example.com/mcp").unwrap(),
            issuer: &Issuer::parse("https://auth.example.com").unwrap(),
            resource: &ResourceUri::parse("https://mcp.example.com/mcp").unwrap(),
            is_unbound: false,
            client_id: None,
            asked: &Scopes::parse("a b").unwrap(),
            binding: None,
        };
        ResourceToken::new(TokenResponse::parse(answer.as_bytes()).unwrap(), purpose, UnixTime::from_secs(1000))
    }

    /// I9: the token goes to the resource's origin and nowhere else.
    #[test]
    fn the_token_stays_with_its_origin() {
        let token = token(r#"{"access_token":"hush","token_type":"bearer"}"#).unwrap();
        let sent = |url: &str| token.authorization_for(&Url::parse(url).unwrap());
        assert_eq!(sent("https://mcp.example.com/mcp").unwrap(), "Bearer hush");
        assert!(sent("https://mcp.example.com:443/other?a=b").is_some());
        for url in [
            "https://mcp.example.com:444/mcp",
            "http://mcp.example.com/mcp",
            "https://evil.example/mcp",
            "https://mcp.example.com.evil.example/mcp",
            "https://a@mcp.example.com/mcp",
            "data:text/plain,x",
        ] {
            assert!(sent(url).is_none(), "{url}");
        }
    }

    /// H4: a token serves the URL that it was obtained for and its resource, and nothing else.
    #[test]
    fn a_token_is_for_its_start_and_its_resource() {
        let obtained = |resource: &str, start: Option<&str>| {
            let mut parts = token(r#"{"access_token":"hush","token_type":"bearer"}"#).unwrap().parts().clone();
            parts.start = start.map(|start| StartUrl::parse(start).unwrap());
            parts.resource = ResourceUri::parse(resource).unwrap();
            ResourceToken::from_parts(parts)
        };
        let (root, path) = ("https://mcp.example.com/", "https://mcp.example.com/a/mcp");
        for (resource, start, other, expected) in [
            (root, Some(path), path, true),
            (root, Some(path), "https://mcp.example.com", true),
            (root, Some(path), "https://mcp.example.com/a/mcp/", false),
            (root, Some(path), "https://mcp.example.com/evil/mcp", false),
            (root, Some(path), "https://mcp.example.com/a/mcp?b", false),
            (root, Some(root), path, false),
            (root, None, path, false),
            (root, None, root, true),
            (path, None, "https://mcp.example.com/a/mcp/", true),
            (path, None, "https://mcp.example.com/a/mcp/b", false),
            (path, Some(path), "https://mcp.example.com:444/a/mcp", false),
        ] {
            let token = obtained(resource, start);
            assert_eq!(token.is_for(&StartUrl::parse(other).unwrap()), expected, "{resource} {start:?} {other}");
        }
    }

    /// I4: a token of another type than Bearer is refused.
    #[test]
    fn only_bearer_tokens_are_taken() {
        for kind in ["DPoP", "N_A", "mac"] {
            let answer = format!(r#"{{"access_token":"hush","token_type":"{kind}"}}"#);
            assert_eq!(token(&answer).unwrap_err().code(), "client.token_type");
        }
    }

    /// I4: every field of the answer is read.
    #[test]
    fn every_field_of_the_answer_is_read() {
        let full = token(
            r#"{"access_token":"hush","token_type":"Bearer","expires_in":300,"refresh_token":"quiet","scope":"a"}"#,
        )
        .unwrap();
        assert_eq!(full.expires_at(), Some(UnixTime::from_secs(1300)));
        assert_eq!(full.refresh_token().unwrap().secret(), "quiet");
        assert_eq!(full.scopes().unwrap().to_string(), "a");
        let bare = token(r#"{"access_token":"hush","token_type":"Bearer"}"#).unwrap();
        assert_eq!((bare.expires_at(), bare.scopes().unwrap().to_string()), (None, "a b".into()));
    }

    /// I5: a token is due a minute before its end, a short one when a fifth of its life is left; what a refresh does not
    /// name stays.
    #[test]
    fn a_token_is_refreshed_ahead_of_its_end() {
        let secs = UnixTime::from_secs;
        let due = |lifetime: u64| {
            let token = token(&format!(r#"{{"access_token":"a","token_type":"Bearer","expires_in":{lifetime}}}"#));
            let token = token.unwrap();
            (1000..=1000 + lifetime).find(|now| token.is_due(secs(*now))).unwrap() - 1000
        };
        assert_eq!((due(3600), due(300), due(50), due(0)), (3540, 240, 40, 0));
        let endless = token(r#"{"access_token":"a","token_type":"Bearer","refresh_token":"r"}"#).unwrap();
        assert!(!endless.is_due(secs(u64::MAX)) && !endless.is_expired(secs(u64::MAX)));

        let answer = |text: &str| TokenResponse::parse(text.as_bytes()).unwrap();
        let next = endless.refreshed(answer(r#"{"access_token":"b","token_type":"Bearer"}"#), secs(2000)).unwrap();
        assert_eq!((next.access_token().secret(), next.refresh_token().unwrap().secret()), ("b", "r"));
        assert_eq!((next.scopes(), next.obtained_at()), (endless.scopes(), secs(2000)));
        let rotated = r#"{"access_token":"c","token_type":"Bearer","refresh_token":"s","scope":"a","expires_in":1}"#;
        let next = endless.refreshed(answer(rotated), secs(2000)).unwrap();
        assert_eq!(next.refresh_token().unwrap().secret(), "s");
        assert_eq!((next.scopes().unwrap().to_string(), next.expires_at()), ("a".into(), Some(secs(2001))));
    }

    /// J3: neither token shows in Debug.
    #[test]
    fn debug_is_redacted() {
        let token = token(r#"{"access_token":"hush","token_type":"Bearer","refresh_token":"quiet"}"#).unwrap();
        let shown =
            format!("{token:?} {:?}", token.authorization_for(&Url::parse("https://mcp.example.com/").unwrap()));
        assert!(!shown.contains("hush") && !shown.contains("quiet"), "{shown}");
        assert!(shown.starts_with("ResourceToken { issuer: "), "{shown}");
    }
}
