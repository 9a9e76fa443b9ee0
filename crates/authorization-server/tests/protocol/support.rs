//! A server with one resource and two clients.

use std::sync::Arc;

use http::HeaderMap;
use portcullis_authorization_server::{
    AuthorizationCode, ErrorCode, ErrorResponse, Grant, Params, Policy, RefreshRequest, Store,
    authentication::AuthenticatedClient,
    authorization::{AuthorizationRequest, User},
    client::{
        Client, ClientDirectory, Credential, GrantType, RedirectHosts, RedirectPolicy, RedirectUri,
    },
    resource::{check_resource, parse_resource, single_resource},
    scopes::{grant_scopes, parse_scopes},
};
use portcullis_metadata::{Issuer, Scopes, UnixTime, authorization::PkceVerifier};

use crate::store::MemoryStore;

pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:4321/callback";
/// A redirect URI of `client-c` that is usable only if its host is listed.
pub(crate) const HOSTED_REDIRECT: &str = "https://client.example/callback";

pub(crate) struct Server {
    pub(crate) issuer: Issuer,
    pub(crate) scopes: Scopes,
    pub(crate) store: MemoryStore,
    pub(crate) redirects: RedirectHosts,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            issuer: Issuer::parse("https://mcp.example.com").unwrap(),
            scopes: Scopes::parse("mcp:tools mcp:admin").unwrap(),
            store: MemoryStore::default(),
            redirects: RedirectHosts::default(),
        }
    }

    /// Parses a valid authorization request of `client-a` with this challenge and these scopes.
    pub(crate) async fn request(
        &self,
        verifier: &PkceVerifier,
        scope: &str,
    ) -> AuthorizationRequest {
        let query = format!(
            "client_id=client-a&redirect_uri={REDIRECT}&response_type=code&state=xyz&scope={scope}\
             &resource={RESOURCE}&code_challenge_method=S256&code_challenge={}",
            verifier.challenge().as_str()
        );
        let params = Params::parse(query.as_bytes());
        AuthorizationRequest::parse(self, self, &params, &HeaderMap::new())
            .await
            .unwrap()
    }

    /// Issues a code for `alice`, with a refresh token.
    pub(crate) async fn code(&self, verifier: &PkceVerifier) -> String {
        let request = self.request(verifier, "mcp:tools").await;
        let user = User {
            subject: "alice".into(),
            auth_time: UnixTime::from_secs(1_000),
        };
        let grant = Grant::new(&request, user).unwrap();
        let code = AuthorizationCode::new(&request, grant, true);
        self.store
            .issue_code(code)
            .await
            .unwrap()
            .secret()
            .to_owned()
    }
}

/// Returns an authenticated public client.
pub(crate) fn client(id: &str) -> AuthenticatedClient {
    AuthenticatedClient {
        id: id.into(),
        client: Arc::new(Client {
            name: None,
            redirect_uris: vec![RedirectUri::parse("http://127.0.0.1/callback").unwrap()],
            credential: Credential::None,
            grant_types: vec![GrantType::AuthorizationCode, GrantType::RefreshToken],
            scopes: None,
            may_introspect: false,
            is_document: false,
        }),
    }
}

/// Returns a public client whose redirect URIs are only partly usable.
fn hosted_client() -> Client {
    let uris = [REDIRECT, HOSTED_REDIRECT, "app:/callback"];
    Client {
        name: None,
        redirect_uris: uris
            .map(|uri| RedirectUri::parse_registered(uri).unwrap())
            .into(),
        credential: Credential::None,
        grant_types: vec![GrantType::AuthorizationCode],
        scopes: None,
        may_introspect: false,
        is_document: false,
    }
}

/// Returns the parameters of a form.
pub(crate) fn form(pairs: &[(&str, &str)]) -> Params {
    let encoded = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    Params::parse(encoded.as_bytes())
}

impl ClientDirectory for Server {
    async fn find(&self, id: &str, _headers: &HeaderMap) -> Result<Arc<Client>, ErrorResponse> {
        match id {
            "client-a" | "client-b" => Ok(client(id).client),
            "client-c" => Ok(Arc::new(hosted_client())),
            _ => Err(ErrorResponse::new(
                ErrorCode::InvalidClient,
                "The client is unknown.",
            )),
        }
    }
}

impl Policy for Server {
    fn response_issuer(&self) -> Option<&Issuer> {
        Some(&self.issuer)
    }

    fn is_usable_redirect(&self, uri: &RedirectUri) -> bool {
        self.redirects.is_usable(uri)
    }

    fn scopes(&self, client: &Client, params: &Params) -> Result<Scopes, ErrorResponse> {
        grant_scopes(&self.scopes, client, parse_scopes(params)?.as_ref())
    }

    fn refresh_scopes(&self, params: &Params) -> Result<Option<Scopes>, ErrorResponse> {
        parse_scopes(params)
    }

    fn audience(&self, params: &Params) -> Result<Option<Box<str>>, ErrorResponse> {
        parse_resource(params, Some(RESOURCE)).map(Some)
    }

    fn check_single_resource(&self, params: &Params) -> Result<(), ErrorResponse> {
        single_resource(params).map(drop)
    }

    fn check_audience(&self, params: &Params, granted: Option<&str>) -> Result<(), ErrorResponse> {
        check_resource(params, granted)
    }

    fn refresh(
        &self,
        client: &Client,
        _params: &Params,
        _scopes: &Scopes,
    ) -> Result<RefreshRequest, ErrorResponse> {
        Ok(match client.may_use(GrantType::RefreshToken) {
            true => RefreshRequest::Yes,
            false => RefreshRequest::No,
        })
    }
}
