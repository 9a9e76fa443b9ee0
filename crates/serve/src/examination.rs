//! [`Persistence::examine`]: what would prevent a start, without one.

use std::{path::Path, sync::Arc};

use portcullis_audit::check_chain;
use portcullis_config::{
    Diagnostic, KeyPath,
    file::WithoutState,
    plan::{AuditPlan, Plan},
};
use portcullis_metadata::SystemClock;
use portcullis_state_store::{StateDirectory, StateError};

use crate::{
    broker::{self, persistence::BrokerPersistence},
    dry_run,
    persistence::{
        Persistence, must_chain, not_continued, parse_chain_keys, refusal, unchained,
        without_directory,
    },
};

impl Persistence {
    /// Returns what would prevent [`open`](Self::open), as far as that can be seen while another
    /// process may use the directory. Changes nothing. Reads the records of the broker if no other
    /// process uses them.
    pub async fn examine(plan: &Plan) -> Vec<Diagnostic> {
        let directory = plan.state_dir.as_deref();
        let mut found = match directory.map(|path| (path, StateDirectory::examine(path))) {
            None => Vec::new(),
            Some((path, Ok(()))) => examine_files(plan, path).await,
            Some((_, Err(error))) => Vec::from_iter(refusal_without(plan, &error)),
        };
        let audit = plan.audit.as_ref().filter(|audit| must_chain(audit));
        if let Some(audit) = audit.filter(|audit| audit.keys.is_some() || directory.is_some()) {
            let error = check_chain(&audit.settings.target).err();
            found.extend(error.map(|error| not_continued(&error)));
        }
        found
            .iter()
            .map(|text| Diagnostic::new(&KeyPath::default(), text))
            .collect()
    }
}

/// Returns why the server does not start without the state directory. `None` if it starts.
fn refusal_without(plan: &Plan, error: &StateError) -> Option<String> {
    let needs_key = |audit: &&AuditPlan| audit.keys.is_none() && must_chain(audit);
    if plan.session.without_state == WithoutState::Refuse {
        Some(refusal(error))
    } else if plan.broker.is_some() && plan.replicas.is_none() {
        Some(broker::persistence::refusal(error))
    } else {
        let audit = plan.audit.as_ref().filter(needs_key);
        audit.map(|_| unchained(&without_directory(error)))
    }
}

/// Returns why the server does not start with the files in the state directory.
async fn examine_files(plan: &Plan, directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if plan.session.without_state == WithoutState::Refuse {
        let keys = match plan.session.key_sources {
            Some(_) => Ok(()),
            None => StateDirectory::examine_session_keys(directory),
        };
        let error = keys.and_then(|()| StateDirectory::examine_journal(directory));
        found.extend(error.err().map(|error| refusal(&error)));
    }
    if plan.broker.is_some() && plan.replicas.is_none() {
        let error = examine_broker(plan, directory).await.err();
        found.extend(error.map(|error| format!("{error:#}")));
    }
    let audit = plan.audit.as_ref().filter(|audit| must_chain(audit));
    if audit.is_some_and(|audit| audit.keys.is_none()) {
        let text = StateDirectory::examine_secret(directory, StateDirectory::AUDIT_KEY);
        let keys = text.map_err(anyhow::Error::from).and_then(|text| {
            text.map(|text| parse_chain_keys(directory, &text))
                .transpose()
        });
        found.extend(keys.err().map(|error| unchained(&error)));
    }
    found
}

/// Opens the keys and the records of the broker in a state directory without changing them. Fails
/// with the key and the fix if the start would.
async fn examine_broker(plan: &Plan, directory: &Path) -> anyhow::Result<()> {
    let clock = Arc::new(SystemClock::new());
    let Some(persistence) = BrokerPersistence::open_unchanged(plan, directory, clock)? else {
        return Ok(());
    };
    let state = dry_run::state(plan, Some(persistence))?;
    match (state.broker(), &state.process().broker) {
        (Some(broker), Some(process)) => process.read_records(broker).await,
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
