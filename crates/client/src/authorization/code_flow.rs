//! [`CodeFlow`]: an authorization server that supports the authorization code flow with PKCE.

use portcullis_discovery::ChainPolicy;
use portcullis_metadata::{AuthorizationServerMetadata, Issuer, authorization::PkceChallenge};
use url::Url;

use crate::server::{Server, unsupported_server::UnsupportedServer};

/// An authorization server whose metadata supports the authorization code flow with PKCE.
#[derive(Clone, Debug)]
pub(crate) struct CodeFlow {
    /// The other endpoints, and the capabilities.
    pub(crate) server: Server,
    /// The page at which the user signs in. It is safe to open in a browser.
    pub(crate) authorization_endpoint: Url,
    /// Whether the server sends `iss` in its authorization responses (RFC 9207).
    pub(crate) promises_issuer: bool,
}

impl CodeFlow {
    /// Validates the metadata. The authorization endpoint is checked against `policy` here because
    /// a browser opens it; the other endpoints are checked when they are fetched. `assumes_pkce`
    /// allows a missing list of PKCE methods, but not a list without S256. `grant_types_supported`
    /// is not checked: an authorization server that offers the code flow can list its grants
    /// incompletely. Fails as the variants of [`UnsupportedServer`] say.
    pub(crate) fn from_metadata(
        metadata: &AuthorizationServerMetadata,
        policy: ChainPolicy,
        assumes_pkce: bool,
    ) -> Result<Self, UnsupportedServer> {
        if !metadata
            .response_types_supported
            .iter()
            .any(|kind| kind == "code")
        {
            return Err(UnsupportedServer::NoCodeFlow);
        }
        match metadata.code_challenge_methods_supported.as_deref() {
            Some(methods) if methods.iter().any(|method| method == PkceChallenge::METHOD) => {}
            Some(_) => return Err(UnsupportedServer::NoPkce),
            None if assumes_pkce => {}
            None => return Err(UnsupportedServer::PkceNotAdvertised),
        }
        let authorization_endpoint = metadata
            .authorization_endpoint
            .clone()
            .ok_or(UnsupportedServer::NoAuthorizationEndpoint)?;
        policy
            .of(&authorization_endpoint)
            .check(&authorization_endpoint)
            .map_err(UnsupportedServer::UnsafeAuthorizationEndpoint)?;
        Ok(Self {
            server: Server::from_metadata(metadata, policy)?,
            authorization_endpoint,
            promises_issuer: metadata.authorization_response_iss_parameter_supported,
        })
    }

    /// Returns the metadata of a server that publishes none, as the 2025-03-26 revision defines it:
    /// fixed paths at its origin.
    pub(crate) fn default_metadata(issuer: Issuer) -> AuthorizationServerMetadata {
        let at = |path: &str| issuer.url().join(path).ok();
        let authorize = at("/authorize");
        let token = at("/token");
        let register = at("/register");
        let mut metadata = AuthorizationServerMetadata::new(issuer);
        metadata.authorization_endpoint = authorize;
        metadata.token_endpoint = token;
        metadata.registration_endpoint = register;
        metadata.response_types_supported = vec!["code".into()];
        // That revision requires PKCE of every server.
        metadata.code_challenge_methods_supported = Some(vec![PkceChallenge::METHOD.into()]);
        metadata
    }
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::{UrlPolicy, UrlPolicyError};

    use super::*;

    const LOOPBACK: UrlPolicy = UrlPolicy::Peer {
        loopback_http: true,
        private_addresses: false,
    };

    fn parsed(
        change: impl FnOnce(&mut AuthorizationServerMetadata),
    ) -> Result<CodeFlow, UnsupportedServer> {
        parsed_assuming(false, change)
    }

    fn parsed_assuming(
        assumes_pkce: bool,
        change: impl FnOnce(&mut AuthorizationServerMetadata),
    ) -> Result<CodeFlow, UnsupportedServer> {
        let mut metadata =
            AuthorizationServerMetadata::new(Issuer::parse("https://auth.example.com").unwrap());
        metadata.authorization_endpoint =
            Some(Url::parse("https://auth.example.com/authorize").unwrap());
        metadata.token_endpoint = Some(Url::parse("https://auth.example.com/token").unwrap());
        metadata.response_types_supported = vec!["token".into(), "code".into()];
        metadata.code_challenge_methods_supported = Some(vec!["plain".into(), "S256".into()]);
        change(&mut metadata);
        CodeFlow::from_metadata(&metadata, LOOPBACK.into(), assumes_pkce)
    }

    /// G7: no authorization without S256 in the metadata.
    #[test]
    fn s256_must_be_advertised() {
        assert!(parsed(|_| ()).is_ok());
        let missing =
            |m: &mut AuthorizationServerMetadata| m.code_challenge_methods_supported = None;
        assert_eq!(
            parsed(missing).unwrap_err(),
            UnsupportedServer::PkceNotAdvertised
        );
        let plain = |m: &mut AuthorizationServerMetadata| {
            m.code_challenge_methods_supported = Some(vec!["plain".into()])
        };
        assert_eq!(parsed(plain).unwrap_err(), UnsupportedServer::NoPkce);
    }

    /// G7: PKCE can be assumed only if the metadata lists no methods.
    #[test]
    fn pkce_is_assumed_only_without_a_list() {
        assert!(parsed_assuming(true, |m| m.code_challenge_methods_supported = None).is_ok());
        for listed in [vec![], vec!["plain".to_owned()], vec!["s256".to_owned()]] {
            let outcome =
                parsed_assuming(true, |m| m.code_challenge_methods_supported = Some(listed));
            assert_eq!(outcome.unwrap_err(), UnsupportedServer::NoPkce);
        }
    }

    /// G8: metadata without the response type `code` or one of the two endpoints is rejected. The
    /// list of grants is not decisive.
    #[test]
    fn the_code_flow_must_be_offered() {
        assert_eq!(
            parsed(|m| m.response_types_supported = vec!["token".into()]).unwrap_err(),
            UnsupportedServer::NoCodeFlow
        );
        assert_eq!(
            parsed(|m| m.response_types_supported.clear()).unwrap_err(),
            UnsupportedServer::NoCodeFlow
        );
        assert!(
            parsed(|m| m.grant_types_supported = Some(vec!["client_credentials".into()])).is_ok()
        );
        assert_eq!(
            parsed(|m| m.authorization_endpoint = None).unwrap_err(),
            UnsupportedServer::NoAuthorizationEndpoint
        );
        assert_eq!(
            parsed(|m| m.token_endpoint = None).unwrap_err(),
            UnsupportedServer::NoTokenEndpoint
        );
    }

    /// G3: a server without metadata has the paths of 2025-03-26 at its origin, and does not
    /// promise `iss`.
    #[test]
    fn the_default_metadata_has_fixed_paths() {
        let metadata =
            CodeFlow::default_metadata(Issuer::parse("https://auth.example.com/tenant").unwrap());
        let endpoints = [
            &metadata.authorization_endpoint,
            &metadata.token_endpoint,
            &metadata.registration_endpoint,
        ];
        let paths = ["authorize", "token", "register"];
        for (endpoint, path) in endpoints.into_iter().zip(paths) {
            assert_eq!(
                endpoint.as_ref().unwrap().as_str(),
                format!("https://auth.example.com/{path}")
            );
        }
        let flow = CodeFlow::from_metadata(&metadata, LOOPBACK.into(), false).unwrap();
        assert!(!flow.promises_issuer);
        assert!(
            parsed(|m| m.authorization_response_iss_parameter_supported = true)
                .unwrap()
                .promises_issuer
        );
    }

    /// Only https and loopback http authorization URLs are opened.
    #[test]
    fn the_authorization_endpoint_is_safe_to_open() {
        let at = |url: &str| parsed(|m| m.authorization_endpoint = Some(Url::parse(url).unwrap()));
        assert!(at("http://127.0.0.1:9/authorize").is_ok());
        for url in [
            "http://auth.example.com/authorize",
            "file:///bin/sh",
            "javascript:alert(1)",
            "data:text/html,x",
        ] {
            assert_eq!(
                at(url).unwrap_err(),
                UnsupportedServer::UnsafeAuthorizationEndpoint(UrlPolicyError::Scheme),
                "{url}"
            );
        }
        assert_eq!(
            at("https://10.0.0.1/authorize").unwrap_err(),
            UnsupportedServer::UnsafeAuthorizationEndpoint(UrlPolicyError::Address)
        );
    }
}
