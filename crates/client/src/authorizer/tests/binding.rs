//! Which tokens are bound to a key.

use super::*;
use crate::dpop;

/// I8: a token is bound where the resource takes bound tokens and the server makes them, and not where the resource says
/// nothing of them. A resource that takes no others gets no other.
#[tokio::test]
async fn a_token_is_bound_where_both_sides_can() {
    let (bearer, bound, both) = ("Bearer", "DPoP algs=\"ES256\"", "Bearer realm=\"a\", DPoP algs=\"ES256\"");
    for (challenge, required, binds, outcome) in [
        (bearer, false, true, Ok(false)),
        (bearer, true, true, Ok(true)),
        (bearer, true, false, Err("client.no_binding")),
        (both, false, true, Ok(true)),
        (both, false, false, Ok(false)),
        (both, true, false, Err("client.no_binding")),
        (bound, false, true, Ok(true)),
        (bound, false, false, Err("client.no_binding")),
    ] {
        let network = but(move |request| match request.url.as_str() {
            RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, challenge)),
            PRM => {
                let mut document = prm(RESOURCE);
                document["dpop_bound_access_tokens_required"] = required.into();
                Some(Reply::json(200, document))
            }
            METADATA if binds => {
                let mut document = metadata();
                document["dpop_signing_alg_values_supported"] = serde_json::json!(["ES256"]);
                Some(Reply::json(200, document))
            }
            TOKEN => {
                let kind = if request.headers.contains_key(dpop::PROOF) { "DPoP" } else { "Bearer" };
                Some(Reply::json(200, serde_json::json!({ "access_token": "hush", "token_type": kind })))
            }
            _ => None,
        });
        let given = run(&network, &Person::consents()).await;
        let said = given.map(|token| token.is_bound()).map_err(|error| error.code());
        assert_eq!(said, outcome, "{challenge} {required} {binds}");
    }
}
