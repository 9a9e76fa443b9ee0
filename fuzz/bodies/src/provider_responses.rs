//! Feeds input to the client of identity providers, as the provider's responses.

use std::sync::Arc;

use portcullis_identity_provider::{Callback, IdentityProvider, ProviderKind, ProviderSettings};
use portcullis_metadata::{Issuer, Secret};
use portcullis_testkit::{ManualClock, ScriptedFetch};
use tokio::runtime::{Builder, Runtime};

const OIDC: &str = "https://idp.example";
/// A metadata document, for which `METADATA` stands.
const METADATA: &str = r#"{"issuer":"https://idp.example","authorization_endpoint":"https://idp.example/authorize","token_endpoint":"https://idp.example/token","userinfo_endpoint":"https://idp.example/userinfo","jwks_uri":"https://idp.example/jwks","response_types_supported":["code"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"],"code_challenge_methods_supported":["S256"]}"#;

thread_local! {
    static RUNTIME: Option<Runtime> = Builder::new_current_thread().enable_time().build().ok();
}

/// The input is the kind of provider in the first line, and its responses, which a line `--`
/// separates: the metadata, the token response, and that of the user API. Without a valid ID token,
/// only the user API of GitHub identifies a user. No logout token is valid, because the keys are
/// missing.
pub fn provider_responses(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (kind, responses) = text.split_once('\n').unwrap_or((&text, ""));
    let kind = ProviderKind::parse(kind).unwrap_or(ProviderKind::Oidc);
    let mut responses = responses.splitn(3, "\n--\n");
    let mut next = || responses.next().unwrap_or_default().to_owned();
    let (metadata, token, user) = (next().replace("METADATA", METADATA), next(), next());
    let network = ScriptedFetch::new();
    let issuer = match kind {
        ProviderKind::GitHub => {
            network.serve(
                "https://github.com/login/oauth/access_token",
                200,
                token.clone(),
            );
            network.serve("https://api.github.com/user", 200, user);
            "https://github.com"
        }
        _ => {
            let path = "/.well-known/openid-configuration";
            network.serve(format!("{OIDC}{path}"), 200, metadata);
            network.serve(format!("{OIDC}/token"), 200, token.clone());
            network.serve(format!("{OIDC}/userinfo"), 200, user);
            OIDC
        }
    };
    let Ok(issuer) = Issuer::parse(issuer) else {
        return;
    };
    RUNTIME.with(|runtime| {
        let Some(runtime) = runtime else { return };
        let secret = Secret::new("secret-at-idp");
        let settings = ProviderSettings::new("idp", kind, issuer, "broker", secret);
        let clock = Arc::new(ManualClock::new());
        let control = runtime.handle().clone();
        let provider = IdentityProvider::new(settings, Arc::new(network), clock, control);
        if let Ok(provider) = provider {
            runtime.block_on(sign_in(&provider, &token));
        }
    });
}

async fn sign_in(provider: &IdentityProvider, token: &str) {
    assert!(provider.verify_logout_token(token).await.is_err());
    let callback = Callback {
        code: "code",
        iss: None,
        redirect_uri: "https://mcp.example.com/oauth/callback/idp",
        verifier: "verifier",
    };
    let Ok(response) = provider.redeem(&callback).await else {
        return;
    };
    let debug = format!("{:?}", response.tokens());
    for secret in ["gho_secret", "provider-refresh-token"] {
        assert!(!debug.contains(secret), "{debug}");
    }
    let Ok(identity) = provider.identify(&response, Some("nonce")).await else {
        return;
    };
    assert_eq!(provider.kind(), ProviderKind::GitHub);
    assert!(identity.subject.starts_with("idp_"), "{identity:?}");
    assert!(!identity.has_id_token);
    assert!(!identity.provider_subject.is_empty());
    let again = provider.check_with_access_token(response.tokens()).await;
    assert!(
        again.is_err()
            || again.is_ok_and(|again| again.is_none_or(|again| again.subject == identity.subject))
    );
}
