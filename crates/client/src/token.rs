use std::{fmt, time::Duration};

use http::HeaderValue;
use portcullis_metadata::{AccessToken, Issuer, ResourceUri, Scopes, Secret, TokenResponse, UnixTime};
use url::{Origin, Url};
use zeroize::Zeroizing;

use crate::{ClientError, StartUrl};

/// An access token and the one resource it may be sent to. Kept in memory, redacted in Debug, wiped when dropped.
pub struct ResourceToken {
    access_token: AccessToken,
    refresh_token: Option<Secret>,
    origin: Origin,
    issuer: Issuer,
    resource: ResourceUri,
    scopes: Option<Scopes>,
    expires: Option<UnixTime>,
}

/// What a token is for.
pub(crate) struct Purpose<'a> {
    pub(crate) start: &'a StartUrl,
    pub(crate) issuer: &'a Issuer,
    pub(crate) resource: &'a ResourceUri,
    /// What was asked for, which is what was granted unless the answer says otherwise (RFC 6749 section 5.1).
    pub(crate) asked: &'a Scopes,
}

impl ResourceToken {
    pub(crate) fn new(response: TokenResponse, purpose: &Purpose<'_>, now: UnixTime) -> Result<Self, ClientError> {
        if !response.is_bearer() {
            return Err(ClientError::TokenType);
        }
        let asked = || (!purpose.asked.is_empty()).then(|| purpose.asked.clone());
        Ok(Self {
            access_token: response.access_token,
            refresh_token: response.refresh_token,
            origin: purpose.start.url().origin(),
            issuer: purpose.issuer.clone(),
            resource: purpose.resource.clone(),
            scopes: response.scope.map_or_else(asked, |granted| Scopes::parse(&granted).ok()),
            expires: response.expires_in.map(|lifetime| now.plus(Duration::from_secs(lifetime))),
        })
    }

    /// The `Authorization` header for a request to `url`, or none when `url` is not of the resource's origin: the
    /// token goes nowhere else.
    pub fn authorization_for(&self, url: &Url) -> Option<HeaderValue> {
        if url.origin() != self.origin || StartUrl::new(url.clone()).is_err() {
            return None;
        }
        let text = Zeroizing::new(format!("Bearer {}", self.access_token.secret()));
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The token itself, for a caller that sends it on its own. It is for the resource alone.
    pub fn access_token(&self) -> &AccessToken {
        &self.access_token
    }

    /// What gets the next token, where the server gave it.
    pub fn refresh_token(&self) -> Option<&Secret> {
        self.refresh_token.as_ref()
    }

    /// Who issued it.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// What it was asked for: the `resource` of both requests.
    pub fn resource(&self) -> &ResourceUri {
        &self.resource
    }

    /// The scopes granted, where the answer or the request named any.
    pub fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }

    /// When it ends, where the server said so.
    pub fn expires(&self) -> Option<UnixTime> {
        self.expires
    }
}

impl fmt::Debug for ResourceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceToken")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .field("expires", &self.expires)
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
            asked: &Scopes::parse("a b").unwrap(),
        };
        ResourceToken::new(TokenResponse::parse(answer.as_bytes()).unwrap(), &purpose, UnixTime::from_secs(1000))
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

    /// A token of another type than Bearer is refused.
    #[test]
    fn only_bearer_tokens_are_taken() {
        for kind in ["DPoP", "N_A", "mac"] {
            let answer = format!(r#"{{"access_token":"hush","token_type":"{kind}"}}"#);
            assert_eq!(token(&answer).unwrap_err().code(), "client.token_type");
        }
    }

    /// Every field of the answer is read.
    #[test]
    fn every_field_of_the_answer_is_read() {
        let full = token(
            r#"{"access_token":"hush","token_type":"Bearer","expires_in":300,"refresh_token":"quiet","scope":"a"}"#,
        )
        .unwrap();
        assert_eq!(full.expires(), Some(UnixTime::from_secs(1300)));
        assert_eq!(full.refresh_token().unwrap().secret(), "quiet");
        assert_eq!(full.scopes().unwrap().to_string(), "a");
        let bare = token(r#"{"access_token":"hush","token_type":"Bearer"}"#).unwrap();
        assert_eq!((bare.expires(), bare.scopes().unwrap().to_string()), (None, "a b".into()));
    }

    /// J3: neither token shows in Debug.
    #[test]
    fn debug_is_redacted() {
        let token = token(r#"{"access_token":"hush","token_type":"Bearer","refresh_token":"quiet"}"#).unwrap();
        let shown =
            format!("{token:?} {:?}", token.authorization_for(&Url::parse("https://mcp.example.com/").unwrap()));
        assert!(!shown.contains("hush") && !shown.contains("quiet"), "{shown}");
    }
}
