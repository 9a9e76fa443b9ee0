//! Registered redirect URIs that the server does not, or no longer, accept.

use http::HeaderMap;
use portcullis_authorization_server::{
    AuthorizationCode, ErrorCode, Grant, Params, Store,
    authorization::{AuthorizationError, AuthorizationRequest, User},
    client::{RedirectHost, RedirectHosts},
    token::exchange_code,
};
use portcullis_metadata::{UnixTime, authorization::PkceVerifier};

use crate::support::{HOSTED_REDIRECT, REDIRECT, Server, client, form};

fn server_with_listed_host() -> Server {
    let mut server = Server::new();
    server.redirects = RedirectHosts::new([RedirectHost::parse("client.example").unwrap()]);
    server
}

async fn parse(
    server: &Server,
    redirect: &str,
    verifier: &PkceVerifier,
) -> Result<AuthorizationRequest, AuthorizationError> {
    let query = format!(
        "client_id=client-c&redirect_uri={redirect}&response_type=code\
         &code_challenge_method=S256&code_challenge={}",
        verifier.challenge().as_str()
    );
    let params = Params::parse(query.as_bytes());
    AuthorizationRequest::parse(server, server, &params, &HeaderMap::new()).await
}

#[tokio::test]
async fn an_unusable_redirect_uri_gets_a_page_and_the_others_work() {
    let (server, verifier) = (Server::new(), PkceVerifier::generate().unwrap());
    for unusable in [HOSTED_REDIRECT, "app:/callback"] {
        let error = parse(&server, unusable, &verifier).await.unwrap_err();
        let AuthorizationError::Untrusted(sentence) = error else {
            panic!("{unusable}: {error}");
        };
        assert!(sentence.contains("list of redirect hosts"), "{sentence}");
    }
    assert!(parse(&server, REDIRECT, &verifier).await.is_ok());
    let server = server_with_listed_host();
    assert!(parse(&server, HOSTED_REDIRECT, &verifier).await.is_ok());
}

#[tokio::test]
async fn a_host_that_is_removed_from_the_list_gets_no_code_and_no_token() {
    let mut server = server_with_listed_host();
    let verifier = PkceVerifier::generate().unwrap();
    let request = parse(&server, HOSTED_REDIRECT, &verifier).await.unwrap();
    assert!(request.check_redirect(&server).is_ok());
    let user = User {
        subject: "alice".into(),
        auth_time: UnixTime::from_secs(1_000),
    };
    let grant = Grant::new(&request, user).unwrap();
    let code = AuthorizationCode::new(&request, grant, false);
    let code = server.store.issue_code(code).await.unwrap();

    let listed = std::mem::take(&mut server.redirects);
    let error = request.check_redirect(&server).unwrap_err();
    assert!(matches!(error, AuthorizationError::Untrusted(_)));
    let client = client("client-c");
    let form = form(&[
        ("code", code.secret()),
        ("code_verifier", verifier.secret()),
    ]);
    let error = exchange_code(&server, &server.store, &client, &form, None)
        .await
        .unwrap_err();
    assert_eq!(error.response().code, ErrorCode::InvalidGrant);

    // The failed check consumed nothing.
    server.redirects = listed;
    let granted = exchange_code(&server, &server.store, &client, &form, None).await;
    assert!(granted.is_ok());
}
