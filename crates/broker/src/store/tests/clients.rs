//! Registered clients are bounded, and live as long as they are used.

use portcullis_authorization_server::{
    StoreError,
    client::{NewClient, RedirectHosts, RegistrationRules, parse_registration},
};

use super::*;
use crate::records::CLIENTS;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn registration(id: &str) -> ClientRegistration {
    let body = br#"{"client_name":"Client","redirect_uris":["http://127.0.0.1/callback"]}"#;
    let hosts = RedirectHosts::default();
    let rules = RegistrationRules::Lenient(&hosts);
    let new = NewClient::from_metadata(parse_registration(body).unwrap(), rules, None).unwrap();
    let mut information = new.information;
    information.client_id = id.to_owned();
    ClientRegistration {
        client: Arc::new(new.client),
        information,
    }
}

impl Fixture {
    async fn register(&self, id: &str) -> Result<(), StoreError> {
        self.store.register_client(&registration(id)).await
    }

    async fn is_known(&self, id: &str) -> bool {
        self.store.find_client(id).await.unwrap().is_some()
    }
}

/// RG4: at the ceiling, the client that was never used and is oldest goes.
#[tokio::test]
async fn the_oldest_unused_client_goes() {
    let fixture = Fixture::with(|settings| settings.clients.max_registered = 3);
    for id in ["a", "b", "c"] {
        fixture.register(id).await.unwrap();
        fixture.pass(Duration::from_secs(1));
    }
    fixture.store.touch_client("a").await.unwrap();
    fixture.register("d").await.unwrap();
    let mut known = Vec::new();
    for id in ["a", "b", "c", "d"] {
        known.push(fixture.is_known(id).await);
    }
    assert_eq!(known, [true, false, true, true]);
    // Equal registrations are one record.
    fixture.register("c").await.unwrap();
    assert!(fixture.is_known("d").await);
}

/// RG4, ST7: a client that was sealed with a removed key goes as well.
#[tokio::test]
async fn a_client_of_a_removed_key_goes() {
    let before = Fixture::with(|settings| settings.clients.max_registered = 1);
    before.register("a").await.unwrap();
    let text = BrokerKeys::generate().unwrap();
    let keys = BrokerKeys::parse(&text.replacen("records 1 ", "records 2 ", 1)).unwrap();
    let after = before.replica_with_keys(before.clock.clone(), Arc::new(keys));
    after.register("b").await.unwrap();
    assert!(after.is_known("b").await);
}

#[tokio::test]
async fn clients_in_use_are_not_evicted() {
    let fixture = Fixture::with(|settings| settings.clients.max_registered = 2);
    for id in ["a", "b"] {
        fixture.register(id).await.unwrap();
        fixture.store.touch_client(id).await.unwrap();
    }
    assert!(matches!(fixture.register("c").await, Err(StoreError::Full)));
    fixture.register("a").await.unwrap();
}

/// RG8: a registration lives for 90 days without use, and as long as a grant after its last use.
#[tokio::test]
async fn use_extends_a_registration() {
    let fixture = Fixture::new();
    fixture.register("unused").await.unwrap();
    fixture.register("used").await.unwrap();
    fixture.pass(DAY * 89);
    fixture.store.touch_client("used").await.unwrap();
    fixture.pass(fixture.store.lifetimes.grant);
    assert!(fixture.is_known("used").await);
    fixture.pass(DAY * 2);
    assert!(!fixture.is_known("used").await);
    assert!(!fixture.is_known("unused").await);
}

/// Records are foreign if none can be opened with the keys. Those of a removed key are not, and
/// neither are those of a key that was replaced and is kept.
#[tokio::test]
async fn records_of_other_keys_are_recognized() {
    let fixture = Fixture::new();
    let with = |keys: &str| {
        let keys = Arc::new(BrokerKeys::parse(keys).unwrap());
        let records = Arc::clone(&fixture.records) as _;
        SealedRecords::new(records, keys, Arc::new(fixture.clock.clone()))
    };
    let first = BrokerKeys::generate().unwrap();
    let other = BrokerKeys::generate().unwrap();
    let next = BrokerKeys::generate().unwrap().replace(" 1 ", " 2 ");
    assert!(!with(&first).are_foreign(CLIENTS).await.unwrap());
    let records = with(&first);
    let mut change = records.change();
    change
        .put(CLIENTS, b"a", &1, fixture.clock.now().saturating_add(DAY))
        .unwrap();
    assert!(change.commit().await.unwrap());

    assert!(!with(&first).are_foreign(CLIENTS).await.unwrap());
    assert!(with(&other).are_foreign(CLIENTS).await.unwrap());
    let rotated = format!("{next}\n{}", *first);
    assert!(!with(&rotated).are_foreign(CLIENTS).await.unwrap());
    assert!(!with(&next).are_foreign(CLIENTS).await.unwrap());
}

/// ST7: a client whose record was sealed with a removed key is unknown, and can register again. One
/// that was sealed with another key of the same epoch is an error.
#[tokio::test]
async fn clients_of_a_removed_key_register_again() {
    let fixture = Fixture::new();
    fixture.register("a").await.unwrap();
    let with = |keys: &str| {
        let keys = Arc::new(BrokerKeys::parse(keys).unwrap());
        let records = Arc::clone(&fixture.records) as _;
        let records = SealedRecords::new(records, keys, Arc::new(fixture.clock.clone()));
        BrokerStore {
            records,
            ..fixture.store.clone()
        }
    };
    let other = BrokerKeys::generate().unwrap();
    assert!(with(&other).find_client("a").await.is_err());
    assert!(
        with(&other)
            .register_client(&registration("a"))
            .await
            .is_err()
    );
    let store = with(&other.replace(" 1 ", " 2 "));
    assert!(store.find_client("a").await.unwrap().is_none());
    store.register_client(&registration("a")).await.unwrap();
    assert!(store.find_client("a").await.unwrap().is_some());
}
