//! Grants that administrators list and end.

use http::StatusCode;
use portcullis_broker::GrantFilter;
use portcullis_verifier::RevokedTokens as _;

use crate::support::{RESOURCE, Setup, claims};

/// A grant is listed without its tokens. After its end, its refresh token is unknown and its access
/// token revoked. Grants of others remain.
#[tokio::test]
async fn an_administrator_ends_the_grants_of_a_user() {
    let setup = Setup::new();
    let client = setup.client().await;
    let alice = setup.sign_in(&client).await;
    setup.provider.user.lock()["sub"] = "bob".into();
    let bob = setup.sign_in(&client).await;
    let (sid, subject) = (&claims(&alice)["sid"], &claims(&alice)["sub"]);
    let filter = GrantFilter {
        subject: Some(subject.as_str().unwrap().into()),
        provider: Some("idp".into()),
        ..GrantFilter::default()
    };
    let page = setup.broker.grants(&filter, None, 10).await.unwrap();
    let [grant] = page.grants.as_slice() else {
        panic!("{page:?}")
    };
    assert_eq!(*grant.id, *sid);
    assert_eq!(*grant.client_id, *client.id);
    assert_eq!(grant.resource.as_deref(), Some(RESOURCE));
    assert_eq!(grant.provider.as_deref(), Some("idp"));
    let shown = format!("{page:?}");
    for token in ["provider-refresh-token", "provider-access-token"] {
        assert!(!shown.contains(token), "{shown}");
    }
    for name in ["access_token", "refresh_token"] {
        assert!(!shown.contains(alice[name].as_str().unwrap()), "{name}");
    }

    let ended = setup.broker.end_grants(&filter, None).await.unwrap();
    assert_eq!((ended.ended, ended.unreadable, ended.next), (1, 0, None));
    assert!(setup.events.contains("Administrator"));
    assert!(setup.ends.is_revoked(sid.as_str(), None));
    let refresh = async |tokens: &serde_json::Value| {
        let token = tokens["refresh_token"].as_str().unwrap();
        setup.refresh(&client, token).await.status()
    };
    assert_eq!(refresh(&alice).await, StatusCode::BAD_REQUEST);
    assert_eq!(refresh(&bob).await, StatusCode::OK);
    let all = setup
        .broker
        .grants(&GrantFilter::default(), None, 10)
        .await
        .unwrap();
    assert_eq!(*all.grants[0].id, claims(&bob)["sid"]);
    assert_eq!(all.grants.len(), 1);
}
