//! Key identifiers of other issuers: the keys of one issuer never verify tokens of another.

use portcullis_metadata::SystemClock;
use portcullis_scenarios::{Deployment, Scratch};
use portcullis_testkit::TestIssuer;

const OTHER: &str = "https://other.example";

struct Fixture {
    deployment: Deployment,
    other: TestIssuer,
    _keys: Scratch,
}

async fn two_issuers() -> Fixture {
    let other = TestIssuer::new(OTHER).with_resource(Deployment::RESOURCE).with_clock(SystemClock::new());
    let keys = Scratch::file("other.json", &other.jwks_json());
    let table = format!("[[issuer]]\nissuer = \"{OTHER}\"\njwks_file = \"{}\"", keys.as_str());
    let deployment = Deployment::builder().tables(table).start().await;
    Fixture { deployment, other, _keys: keys }
}

/// C1, C2: a token is verified only with the keys of the issuer that it names.
#[tokio::test]
async fn a_key_of_the_other_issuer() {
    let Fixture { deployment, other, _keys } = two_issuers().await;
    deployment.assert_accepted("the first issuer", &deployment.good_token()).await;
    deployment.assert_accepted("the second issuer", &other.token().scope("mcp:tools").sign()).await;

    assert_eq!(deployment.test_issuer.key().kid(), other.key().kid(), "both issuers use the same key identifier");
    deployment
        .assert_rejected([
            (
                "key of the second, `iss` of the first",
                deployment.token().signed_by(other.key()).sign(),
                "token.signature",
            ),
            ("key of the first, `iss` of the second", deployment.token().issuer(OTHER).sign(), "token.signature"),
            (
                "without a kid",
                deployment.token().signed_by(other.key()).without_header("kid").sign(),
                "token.signature",
            ),
        ])
        .await;
}

/// C2, C3: a key identifier is only compared. It is never used as a path, a query or a pattern.
#[tokio::test]
async fn key_identifiers_that_lead_elsewhere() {
    let Fixture { deployment, other, _keys } = two_issuers().await;
    let foreign = deployment.token().signed_by(other.key());
    let kids = [
        "../other.json",
        "/dev/null",
        "https://other.example/jwks",
        "https://other.example#rs256-0",
        "' OR '1'='1",
        "*",
        "",
        "rs256-0\u{0}",
        "RS256-0",
        "rs256-0 ",
        " rs256-0",
    ];
    deployment
        .assert_rejected(kids.map(|kid| (format!("kid {kid:?}"), foreign.clone().kid(kid).sign(), "token.key_unknown")))
        .await;
    deployment
        .assert_rejected(
            kids.map(|kid| (format!("own key, kid {kid:?}"), deployment.token().kid(kid).sign(), "token.key_unknown")),
        )
        .await;
    for kid in [serde_json::json!(0), serde_json::json!(null), serde_json::json!(["rs256-0"]), serde_json::json!({})] {
        deployment
            .assert_rejected([(
                kid.to_string(),
                deployment.token().header("kid", kid.clone()).sign(),
                "token.header_malformed",
            )])
            .await;
    }
}

/// C3: without a `kid`, a single published key is used. With two keys, none is used.
#[tokio::test]
async fn no_key_identifier() {
    let deployment = Deployment::start().await;
    deployment.assert_accepted("one key", &deployment.token().without_header("kid").sign()).await;

    let two = TestIssuer::new(OTHER).with_resource(Deployment::RESOURCE).with_clock(SystemClock::new());
    let first = two.key();
    two.rotate();
    let keys = Scratch::file("two.json", &TestIssuer::jwks_of(&[&first, &two.key()]));
    let table = format!("[[issuer]]\nissuer = \"{OTHER}\"\njwks_file = \"{}\"", keys.as_str());
    let deployment = Deployment::builder().tables(table).start().await;
    let token = two.token().scope("mcp:tools");
    deployment.assert_accepted("two keys, and a kid", &token.sign()).await;

    deployment
        .assert_rejected([("two keys, and no kid", token.without_header("kid").sign(), "token.key_ambiguous")])
        .await;
}
