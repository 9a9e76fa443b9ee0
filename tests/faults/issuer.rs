//! An issuer that is away, comes back, and changes its keys.

use portcullis_scenarios::{AuthorizationServer, Portcullis, Request, Site};

/// A site whose only issuer publishes its keys over a socket.
async fn site_of(issuer: &AuthorizationServer) -> Site {
    let name = issuer.forge().issuer().as_str();
    let table = format!("[[issuer]]\nissuer = \"{name}\"\njwks = {{ cooldown = \"1s\" }}");
    Site::builder().tables(table).resource(format!("issuers = [\"{name}\"]")).start().await
}

async fn keys_changed(portcullis: &Portcullis) {
    portcullis.logged("issuer keys changed", |line| line["message"] == "issuer keys changed").await;
}

/// B2, C10: with the issuer away the server starts and says so; its tokens are 401 without `error` and with
/// `Retry-After`; once it is there they are good.
#[tokio::test]
async fn an_issuer_that_comes_later() {
    let mut issuer = AuthorizationServer::closed(Site::RESOURCE);
    let site = site_of(&issuer).await;
    let name = issuer.forge().issuer().as_str().to_owned();
    let healthy = site.send(Request::new("GET", "/healthz")).await;
    assert_eq!((healthy.status, healthy.text().as_str()), (200, "ok\n"), "{healthy:?}");
    let ready = site.send(Request::new("GET", "/readyz")).await;
    assert_eq!(ready.status, 503, "{ready:?}");
    assert_eq!(ready.json()["ready"], false);
    assert!(ready.text().contains(&name), "{ready:?}");

    let token = issuer.forge().token().sign();
    let answer = site.try_token(&token).await;
    assert_eq!(answer.assert_unauthorized(), None, "{answer:?}");
    assert!(
        answer.header("retry-after").is_some_and(|value| value.parse::<u32>().is_ok_and(|seconds| seconds > 0)),
        "{answer:?}"
    );
    site.portcullis.assert_denied(&answer, "issuer.unavailable").await;
    let forged = issuer.forge().token().issuer("https://elsewhere.example").sign();
    site.assert_refused([("another issuer is refused all the same", forged, "token.issuer_unknown")]).await;
    assert_eq!(site.send(Request::new("GET", Site::METADATA_PATH)).await.status, 200, "clients can begin");
    assert!(site.upstream.recorded().is_empty(), "a request reached the upstream");

    issuer.open();
    keys_changed(&site.portcullis).await;
    let ready = site.send(Request::new("GET", "/readyz")).await;
    assert_eq!((ready.status, &ready.json()["ready"]), (200, &serde_json::json!(true)), "{ready:?}");
    site.assert_accepted("the same token", &token).await;
}

/// C10, C11: a rotated key is fetched when the first token of it comes, once; tokens of the old key are refused from
/// then on, remembered ones too.
#[tokio::test]
async fn rotated_keys() {
    let issuer = AuthorizationServer::start(Site::RESOURCE);
    let site = site_of(&issuer).await;
    keys_changed(&site.portcullis).await;
    assert_eq!(issuer.key_requests(), 1);
    let old = issuer.forge().token().sign();
    site.assert_accepted("the old key", &old).await;

    issuer.forge().rotate();
    site.assert_accepted("remembered", &old).await;
    site.assert_accepted("the new key", &issuer.forge().token().sign()).await;
    assert_eq!(issuer.key_requests(), 2);
    site.assert_refused([("the old key", old, "token.key_unknown")]).await;
    // Unknown keys cause no further fetch within the cooldown.
    let unknown = (0..20).map(|number| {
        (number.to_string(), issuer.forge().token().kid(&format!("k{number}")).sign(), "token.key_unknown")
    });
    let before = issuer.key_requests();
    site.assert_refused(unknown).await;
    let fetched = issuer.key_requests() - before;
    assert!(fetched <= 5, "{fetched} fetches for 20 tokens with unknown keys");
}

/// C10: keys are found through the issuer's metadata, or at a configured address.
#[tokio::test]
async fn a_configured_address_of_keys() {
    let issuer = AuthorizationServer::start(Site::RESOURCE);
    let (name, keys) = (issuer.forge().issuer(), issuer.forge().endpoint("jwks"));
    let table = format!("[[issuer]]\nissuer = \"{name}\"\njwks_uri = \"{keys}\"");
    let site = Site::builder().tables(table).resource(format!("issuers = [\"{name}\"]")).start().await;
    keys_changed(&site.portcullis).await;
    site.assert_accepted("its token", &issuer.forge().token().sign()).await;
}
