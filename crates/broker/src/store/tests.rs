//! Codes, grants and refresh tokens, over records in memory.

mod clients;
mod codes;
mod listing;
mod rotation;
mod shared_ends;

use std::sync::Arc;

use parking_lot::Mutex;
use portcullis_authorization_server::{
    AuthorizationCode, ErrorCode, ErrorResponse, Grant, Redemption, Store as _, random_secret,
};
use portcullis_identity_provider::{Identity, ProviderTokens};
use portcullis_metadata::{
    Clock, Issuer, Scopes, Secret, UnixTime,
    authorization::{PkceChallenge, PkceVerifier},
};
use portcullis_state_store::records::MemoryRecords;
use portcullis_testkit::ManualClock;
use serde_json::Map;

use super::{sealed_records::SealedRecords, *};
use crate::{
    access::Access,
    keys::BrokerKeys,
    settings::{BrokerSettings, ClientSettings, PageSettings},
};

pub(super) const CLIENT: &str = "client_1";
const RESOURCE: &str = "https://mcp.example.com/mcp";

/// Records which grants have ended.
#[derive(Default)]
pub(super) struct Ended(Mutex<Vec<(Box<str>, EndReason)>>);

impl EndListener for Ended {
    fn grant_ended(&self, id: &str, _: EndedGrant, reason: EndReason) {
        self.0.lock().push((id.into(), reason));
    }

    fn end_not_stored(&self, _: &str, _: Option<OwnerRecord>, _: EndReason) {}

    fn grant_ended_elsewhere(&self, _: &str, _: UnixTime, _: Option<&SharedGrantEnd>) {}
}

pub(super) struct Fixture {
    pub(super) store: BrokerStore,
    pub(super) clock: ManualClock,
    pub(super) ended: Arc<Ended>,
    pub(super) ends: Arc<Ends>,
    pub(super) records: Arc<MemoryRecords>,
    keys: Arc<BrokerKeys>,
    settings: BrokerSettings,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(super) fn with(change: impl FnOnce(&mut BrokerSettings)) -> Self {
        let mut settings = BrokerSettings {
            issuer: Issuer::parse("https://mcp.example.com").unwrap(),
            resources: Vec::new(),
            default_resource: None,
            providers: Vec::new(),
            clients: ClientSettings::default(),
            pages: PageSettings::default(),
            lifetimes: Lifetimes::default(),
            claims: Default::default(),
            introspection_clients: Vec::new(),
            max_token: 16 * 1024,
        };
        change(&mut settings);
        let clock = ManualClock::new();
        let records = Arc::new(MemoryRecords::new(Arc::new(clock.clone())));
        let keys = BrokerKeys::parse(&BrokerKeys::generate().unwrap()).unwrap();
        Self::assemble(settings, clock, records, Arc::new(keys))
    }

    /// Returns a store with this clock over the same records.
    pub(super) fn replica(&self, clock: ManualClock) -> Self {
        self.replica_with_keys(clock, Arc::clone(&self.keys))
    }

    /// Returns a store with this clock and these keys over the same records.
    pub(super) fn replica_with_keys(&self, clock: ManualClock, keys: Arc<BrokerKeys>) -> Self {
        Self::assemble(
            self.settings.clone(),
            clock,
            Arc::clone(&self.records),
            keys,
        )
    }

    fn assemble(
        settings: BrokerSettings,
        clock: ManualClock,
        records: Arc<MemoryRecords>,
        keys: Arc<BrokerKeys>,
    ) -> Self {
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let sealed = SealedRecords::new(Arc::clone(&records) as _, Arc::clone(&keys), shared);
        let ended = Arc::new(Ended::default());
        let ends = Arc::new(Ends::default());
        let listener = Arc::clone(&ended) as _;
        Self {
            store: BrokerStore::new(sealed, &settings, Arc::clone(&ends), listener),
            clock,
            ended,
            ends,
            records,
            keys,
            settings,
        }
    }

    pub(super) fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Issues a code for a user who has just signed in. Returns the code and its grant.
    pub(super) async fn issue_code(&self, subject: &str) -> (Secret, Grant) {
        let grant = Grant {
            id: random_secret(16).unwrap().secret().into(),
            client_id: CLIENT.into(),
            subject: subject.into(),
            auth_time: self.clock.now(),
            scopes: Scopes::parse("mcp:tools").unwrap(),
            audience: Some(RESOURCE.into()),
            key: None,
        };
        let sign_in = sign_in(subject, self.clock.now());
        self.store.add_sign_in(&grant.id, &sign_in).await.unwrap();
        let code = AuthorizationCode {
            grant: grant.clone(),
            redirect_uri: "http://127.0.0.1/callback".into(),
            challenge: challenge(),
            key: None,
            is_refreshable: true,
        };
        (self.store.issue_code(code).await.unwrap(), grant)
    }

    pub(super) async fn redeem(&self, code: &Secret) -> Redemption {
        self.store
            .redeem_code(code.secret(), None, |_| Ok(()))
            .await
            .unwrap()
    }

    /// Begins a grant. Returns its identifier and its first refresh token.
    pub(super) async fn begin(&self, subject: &str) -> (Box<str>, Secret) {
        let (code, _) = self.issue_code(subject).await;
        match self.redeem(&code).await {
            Redemption::Redeemed {
                grant,
                refresh_token: Some(refresh_token),
            } => (grant.id, refresh_token),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn ended(&self) -> Vec<(Box<str>, EndReason)> {
        self.ended.0.lock().clone()
    }
}

pub(super) fn rejection() -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, "another client")
}

fn challenge() -> PkceChallenge {
    PkceVerifier::generate().unwrap().challenge()
}

fn sign_in(subject: &str, now: UnixTime) -> SignInRecord {
    let identity = Identity {
        subject: subject.into(),
        provider_subject: format!("at provider {subject}").into(),
        provider_session: Some(format!("session of {subject}").into()),
        auth_time: now,
        claims: Map::new(),
        omitted_claims: Vec::new(),
        has_id_token: true,
    };
    let tokens = ProviderTokens {
        refresh_token: Some(Secret::new("provider-refresh-token")),
        ..ProviderTokens::default()
    };
    let access = Access {
        scopes: Scopes::parse("mcp:tools").unwrap(),
        claims: Map::new(),
    };
    SignInRecord::new("google", &identity, &tokens, &access, now)
}
