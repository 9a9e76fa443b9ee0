use std::{sync::Arc, time::Duration};

use portcullis_config::plan::ReplicasPlan;
use portcullis_metadata::Clock;
use portcullis_session::{EndTicket, ScopeId, SessionJournal, SessionStore};
use portcullis_state_store::{
    FileJournal, LimitCounts, LimitUse, Revocations, records::RecordStore,
};
use portcullis_verifier::TokenId;
use tokio::task::JoinHandle;

use crate::health::ReplicaReadiness;

/// The connection to other replicas, which a program without the feature `redis` never has.
#[derive(Clone, Debug)]
pub(crate) enum Replicas {}

pub(crate) async fn open_records(
    plan: &ReplicasPlan,
    _clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn RecordStore>> {
    match *plan {}
}

impl Replicas {
    pub(crate) fn new(plan: &ReplicasPlan, _clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        match *plan {}
    }

    pub(crate) fn journal(&self, _file: Option<Arc<FileJournal>>) -> Arc<dyn SessionJournal> {
        match *self {}
    }

    pub(crate) fn spawn(
        &self,
        _sessions: SessionStore,
        _counts: Arc<dyn LimitCounts>,
        _revocations: Arc<dyn Revocations>,
    ) -> JoinHandle<()> {
        match *self {}
    }

    pub(crate) fn drop_tokens(&self, _issuer: ScopeId) -> EndTicket {
        match *self {}
    }

    pub(crate) fn share_inactive_token(&self, _token: TokenId) {
        match *self {}
    }

    pub(crate) fn share_limit_uses(&self, _uses: &[LimitUse]) {
        match *self {}
    }

    pub(crate) async fn joined(&self) {
        match *self {}
    }

    pub(crate) async fn finish(&self, _task: JoinHandle<()>, _limit: Duration) {
        match *self {}
    }

    pub(crate) fn rejects_all(&self) -> bool {
        match *self {}
    }

    pub(crate) fn readiness(&self) -> ReplicaReadiness {
        match *self {}
    }
}
