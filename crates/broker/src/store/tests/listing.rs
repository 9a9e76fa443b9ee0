//! Lists of grants, and their end by administrators.

use portcullis_state_store::records::{Change, RecordStore as _, StoredRecord, Write};

use super::*;
use crate::{
    grants::{GrantFilter, GrantPage, MAX_EXAMINED},
    records::GRANTS,
};

fn of(subject: &str) -> GrantFilter {
    GrantFilter {
        subject: Some(subject.into()),
        ..GrantFilter::default()
    }
}

fn ids(page: &GrantPage) -> Vec<Box<str>> {
    page.grants.iter().map(|grant| grant.id.clone()).collect()
}

impl Fixture {
    async fn list(&self, filter: &GrantFilter, after: Option<&str>, limit: usize) -> GrantPage {
        self.store.list_grants(filter, after, limit).await.unwrap()
    }

    /// Writes a record of a grant that no key opens.
    async fn write_unreadable(&self, id: &str) {
        let record = StoredRecord {
            value: b"other".to_vec().into(),
            expires: self.clock.now().saturating_add(Duration::from_secs(60)),
        };
        let change = Change {
            conditions: Vec::new(),
            writes: vec![Write::Put {
                table: GRANTS,
                key: id.as_bytes().into(),
                record,
            }],
        };
        self.records.commit(change).await.unwrap();
    }
}

#[tokio::test]
async fn a_grant_is_listed_with_its_owner_and_times() {
    let fixture = Fixture::new();
    let begun = fixture.clock.now();
    let (id, refresh_token) = fixture.begin("alice").await;
    fixture.pass(Duration::from_secs(60));
    fixture
        .store
        .rotate_refresh_token(refresh_token.secret(), |_| Ok(()))
        .await
        .unwrap();
    let page = fixture.list(&GrantFilter::default(), None, 10).await;
    let [grant] = page.grants.as_slice() else {
        panic!("{page:?}")
    };
    assert_eq!(grant.id, id);
    assert_eq!(&*grant.subject, "alice");
    assert_eq!(&*grant.client_id, CLIENT);
    assert_eq!(grant.provider.as_deref(), Some("google"));
    assert_eq!(&*grant.scopes, "mcp:tools");
    assert_eq!(grant.resource.as_deref(), Some(RESOURCE));
    assert_eq!(grant.begun, begun);
    assert_eq!(grant.last_used, fixture.clock.now());
    assert_eq!((page.unreadable, page.next), (0, None));
}

#[tokio::test]
async fn each_name_of_a_filter_must_match() {
    let fixture = Fixture::new();
    let (alice, _) = fixture.begin("alice").await;
    let (bob, _) = fixture.begin("bob").await;
    let filter = |id: &str, subject: &str, client_id: &str, provider: &str| {
        let name = |name: &str| (!name.is_empty()).then(|| name.into());
        GrantFilter {
            id: name(id),
            subject: name(subject),
            client_id: name(client_id),
            provider: name(provider),
        }
    };
    for (filter, expected) in [
        (filter("", "alice", "", ""), vec![&alice]),
        (filter("", "Alice", "", ""), vec![]),
        (filter(&bob, "", "", ""), vec![&bob]),
        (filter(&bob, "alice", "", ""), vec![]),
        (filter("other", "", "", ""), vec![]),
        (filter("", "bob", CLIENT, "google"), vec![&bob]),
        (filter("", "", "client_2", ""), vec![]),
        (filter("", "", "", "github"), vec![]),
    ] {
        let page = fixture.list(&filter, None, 10).await;
        assert_eq!(
            ids(&page).iter().collect::<Vec<_>>(),
            expected,
            "{filter:?}"
        );
    }
    assert_eq!(
        fixture
            .list(&filter("", "", CLIENT, ""), None, 10)
            .await
            .grants
            .len(),
        2
    );
}

#[tokio::test]
async fn pages_have_each_grant_once() {
    let fixture = Fixture::new();
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(fixture.begin("alice").await.0);
        fixture.begin("bob").await;
    }
    expected.sort();
    let mut listed = Vec::new();
    let mut after = None;
    loop {
        let page = fixture.list(&of("alice"), after.as_deref(), 2).await;
        assert!(page.grants.len() <= 2);
        listed.extend(ids(&page));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, expected);
}

/// One call examines a bounded number of grants, and its position leads on although none of them
/// matched.
#[tokio::test]
async fn one_call_examines_a_bounded_number() {
    let fixture = Fixture::new();
    for number in 0..MAX_EXAMINED + 1 {
        fixture.write_unreadable(&format!("{number:06}")).await;
    }
    let first = fixture.list(&GrantFilter::default(), None, 10).await;
    assert_eq!((first.grants.len(), first.unreadable), (0, MAX_EXAMINED));
    let second = fixture
        .list(&GrantFilter::default(), first.next.as_deref(), 10)
        .await;
    assert_eq!((second.unreadable, second.next), (1, None));
}

/// ST2: a record that does not open is counted. It hides no other grant.
#[tokio::test]
async fn an_unreadable_grant_is_counted() {
    let fixture = Fixture::new();
    let (id, _) = fixture.begin("alice").await;
    fixture.write_unreadable("!").await;
    fixture.write_unreadable("~").await;
    let page = fixture.list(&GrantFilter::default(), None, 10).await;
    assert_eq!((ids(&page), page.unreadable), (vec![id], 2));
}

#[tokio::test]
async fn the_grants_that_match_end() {
    let fixture = Fixture::new();
    let (first, refresh_token) = fixture.begin("alice").await;
    let (second, _) = fixture.begin("alice").await;
    let (kept, _) = fixture.begin("bob").await;
    let store = fixture.store.ending_for(EndReason::Administrator);
    let ended = store.end_matching(&of("alice"), None).await.unwrap();
    assert_eq!((ended.ended, ended.next), (2, None));
    let reasons: Vec<_> = fixture
        .ended()
        .into_iter()
        .map(|(_, reason)| reason)
        .collect();
    assert_eq!(reasons, [EndReason::Administrator; 2]);
    for id in [&first, &second] {
        assert!(fixture.ends.contains(id));
    }
    let rotation = fixture
        .store
        .rotate_refresh_token(refresh_token.secret(), |_| Ok(()));
    assert!(matches!(rotation.await.unwrap(), Rotation::Unknown));
    let page = fixture.list(&GrantFilter::default(), None, 10).await;
    assert_eq!(ids(&page), [kept]);
    let again = store.end_matching(&of("alice"), None).await.unwrap();
    assert_eq!(again.ended, 0);
}

/// An identifier that is not that of a grant leaves no trace in the store.
#[tokio::test]
async fn an_unknown_grant_does_not_end() {
    let fixture = Fixture::new();
    fixture.begin("alice").await;
    let filter = GrantFilter {
        id: Some("other".into()),
        ..GrantFilter::default()
    };
    let ended = fixture.store.end_matching(&filter, None).await.unwrap();
    assert_eq!((ended.ended, ended.next), (0, None));
    assert!(!fixture.ends.contains("other"));
    assert!(fixture.ended().is_empty());
}
