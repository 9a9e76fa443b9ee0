//! Tokens are bound by DPoP if the resource and the server support it.

use super::*;
use crate::token::dpop;

/// I8: a token is bound if the resource accepts or requires bound tokens and the server issues them; if the resource
/// requires them and the server does not issue them, there is no token.
#[tokio::test]
async fn a_token_is_bound_if_both_sides_support_it() {
    let bearer = "Bearer";
    let bound = "DPoP algs=\"ES256\"";
    let both = "Bearer realm=\"a\", DPoP algs=\"ES256\"";
    for (challenge, required, binds, expected) in [
        (bearer, false, true, Ok(false)),
        (bearer, true, true, Ok(true)),
        (bearer, true, false, Err("client.no_binding")),
        (both, false, true, Ok(true)),
        (both, false, false, Ok(false)),
        (both, true, false, Err("client.no_binding")),
        (bound, false, true, Ok(true)),
        (bound, false, false, Err("client.no_binding")),
    ] {
        let network = network_with(move |request| match request.url.as_str() {
            RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, challenge)),
            PRM_URL => {
                let mut document = prm(RESOURCE);
                document["dpop_bound_access_tokens_required"] = required.into();
                Some(Reply::json(200, document))
            }
            METADATA_URL if binds => {
                let mut document = metadata();
                document["dpop_signing_alg_values_supported"] = serde_json::json!(["ES256"]);
                Some(Reply::json(200, document))
            }
            TOKEN_URL => {
                let token_type = if request.headers.contains_key(dpop::PROOF) { "DPoP" } else { "Bearer" };
                Some(Reply::json(200, serde_json::json!({ "access_token": "hush", "token_type": token_type })))
            }
            _ => None,
        });
        let result = run(&network, &ScriptedUser::consents()).await;
        let result = result.map(|token| token.is_dpop_bound()).map_err(|error| error.code());
        assert_eq!(result, expected, "{challenge} {required} {binds}");
    }
}

/// I8: the token request is repeated once if the server requires and sends a nonce, and not otherwise.
#[tokio::test]
async fn the_token_request_is_repeated_only_for_a_nonce() {
    for (status, error, nonce, requests) in [
        (400, "use_dpop_nonce", "n", 2),
        (400, "use_dpop_nonce", "", 1),
        (400, "invalid_grant", "n", 1),
        (200, "use_dpop_nonce", "n", 1),
    ] {
        let network = network_with(move |request| match request.url.as_str() {
            RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, "DPoP algs=\"ES256\"")),
            METADATA_URL => {
                let mut document = metadata();
                document["dpop_signing_alg_values_supported"] = serde_json::json!(["ES256"]);
                Some(Reply::json(200, document))
            }
            TOKEN_URL => {
                let reply = Reply::json(status, serde_json::json!({ "error": error }));
                Some(reply.header("dpop-nonce".parse().unwrap(), nonce))
            }
            _ => None,
        });
        assert!(run(&network, &ScriptedUser::consents()).await.is_err());
        assert_eq!(network.to(TOKEN_URL).len(), requests, "{status} {error} {nonce}");
    }
}
