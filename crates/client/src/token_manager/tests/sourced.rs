//! An [`AccessTokenSource`] provides the tokens.

use std::sync::atomic::AtomicUsize;

use portcullis_discovery::BoxFuture;
use portcullis_metadata::authorization::TokenResponse;

use super::*;
use crate::AccessTokenSourceError;

/// Returns `token-0`, `token-1`, ... with this lifetime; always the same one if `changes` is false.
struct CountingSource {
    calls: AtomicUsize,
    expires_in: Option<u64>,
    changes: bool,
}

impl AccessTokenSource for CountingSource {
    fn access_token(&self) -> BoxFuture<'_, Result<TokenResponse, AccessTokenSourceError>> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let token = AccessToken::new(format!("token-{}", if self.changes { number } else { 0 }));
        let response = TokenResponse {
            expires_in: self.expires_in,
            ..TokenResponse::bearer(token)
        };
        Box::pin(async { Ok(response) })
    }
}

/// I10: the source is called once while its token is valid, and once more after a 401; the token is
/// sent only to the resource.
#[tokio::test]
async fn a_source_provides_tokens() {
    for (expires_in, changes, retries) in [
        (None, true, true),
        (Some(3600), true, true),
        (Some(0), true, true),
        (None, false, false),
    ] {
        let source = Arc::new(CountingSource {
            calls: AtomicUsize::new(0),
            expires_in,
            changes,
        });
        let start = StartUrl::parse(RESOURCE).unwrap();
        let manager = Arc::new(TokenManager::with_source(start.clone(), source.clone()));
        for _ in 0..2 {
            let mut headers = HeaderMap::new();
            manager
                .request_authorization()
                .authorize(&Method::GET, start.url(), &mut headers)
                .await
                .unwrap();
            assert!(
                headers[header::AUTHORIZATION]
                    .to_str()
                    .unwrap()
                    .starts_with("Bearer token-")
            );
        }
        assert_eq!(
            source.calls.load(Ordering::Relaxed),
            if expires_in == Some(0) { 2 } else { 1 }
        );
        let mut request = manager.request_authorization();
        let mut headers = HeaderMap::new();
        request
            .authorize(&Method::GET, start.url(), &mut headers)
            .await
            .unwrap();
        let empty = HeaderMap::new();
        assert_eq!(
            request
                .should_retry(StatusCode::UNAUTHORIZED, &empty)
                .await
                .unwrap(),
            retries
        );
        assert!(
            !request
                .should_retry(StatusCode::UNAUTHORIZED, &empty)
                .await
                .unwrap()
        );
        let elsewhere = Url::parse("https://evil.example/mcp").unwrap();
        request
            .authorize(&Method::GET, &elsewhere, &mut headers)
            .await
            .unwrap();
        assert!(!headers.contains_key(header::AUTHORIZATION));
    }
}
