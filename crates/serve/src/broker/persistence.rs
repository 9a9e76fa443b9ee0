//! [`BrokerPersistence`]: the records of the broker, and its keys if they are not configured.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{anyhow, bail};
use parking_lot::Mutex;
use portcullis_broker::BrokerKeys;
use portcullis_config::{Diagnostic, KeyPath, plan::Plan};
use portcullis_metadata::Clock;
use portcullis_state_store::{
    StateDirectory, StateError,
    records::{FileRecords, MemoryRecords, RecordError, RecordStore},
};
use zeroize::Zeroizing;

use crate::replicas::open_records;

/// The key of the configuration that most errors are about.
const KEYS: &str = "broker.keys";

/// The records and the keys of the broker, opened before anything else starts.
pub(crate) struct BrokerPersistence {
    pub(crate) records: Arc<dyn RecordStore>,
    pub(crate) keys: KeysOrigin,
    /// The file of the keys, if they are in the state directory.
    pub(crate) keys_file: Option<PathBuf>,
    /// The file of the records, if they are in one.
    pub(crate) records_file: Option<PathBuf>,
    /// Whether other replicas use the same records.
    pub(crate) is_shared: bool,
}

/// Where the keys of the broker come from.
#[derive(Clone)]
pub(crate) enum KeysOrigin {
    /// They are those of the plan.
    Configured,
    /// They are in memory only.
    Generated(Arc<BrokerKeys>),
    /// They are in the state directory.
    Stored(Arc<StoredKeys>),
}

/// The keys in the state directory, which an operator can replace while the process runs.
pub(crate) struct StoredKeys {
    directory: StateDirectory,
    current: Mutex<(Zeroizing<String>, Arc<BrokerKeys>)>,
}

impl BrokerPersistence {
    /// Keeps the records in memory, and the keys as well if they are not configured. Fails if keys
    /// cannot be generated.
    pub(crate) fn in_memory(plan: &Plan, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let keys = match is_configured(plan) {
            true => KeysOrigin::Configured,
            false => KeysOrigin::Generated(Arc::new(BrokerKeys::parse(&BrokerKeys::generate()?)?)),
        };
        Ok(Self {
            records: Arc::new(MemoryRecords::new(clock)),
            keys,
            keys_file: None,
            records_file: None,
            is_shared: false,
        })
    }

    /// Opens the records of all replicas in Redis or, if there is one replica, those in the state
    /// directory. Keeps everything in memory if there is neither. Fails with the key of the
    /// configuration and the fix if something cannot be used: without its records, a broker would
    /// forget which tokens it revoked.
    pub(crate) async fn open(
        plan: &Plan,
        directory: Option<&StateDirectory>,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        match (&plan.replicas, directory) {
            (Some(replicas), _) => Ok(Self {
                records: open_records(replicas, clock).await?,
                keys: KeysOrigin::Configured,
                keys_file: None,
                records_file: None,
                is_shared: true,
            }),
            (None, Some(directory)) => Self::open_directory(plan, directory, clock),
            (None, None) => Self::in_memory(plan, clock),
        }
    }

    /// Opens the records in the state directory, and the keys in it if they are not configured.
    /// Missing keys are generated.
    pub(super) fn open_directory(
        plan: &Plan,
        directory: &StateDirectory,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let keys = match is_configured(plan) {
            true => KeysOrigin::Configured,
            false => KeysOrigin::Stored(Arc::new(StoredKeys::open(directory)?)),
        };
        let records = FileRecords::open(directory, clock)
            .map_err(|error| anyhow!(unusable_records(&error)))?;
        Ok(Self {
            records: Arc::new(records),
            keys,
            keys_file: stored_keys_file(plan, directory.path()),
            records_file: Some(directory.path().join(StateDirectory::RECORDS)),
            is_shared: false,
        })
    }

    /// As [`open_directory`](Self::open_directory), and changes nothing in the directory: missing
    /// keys, and changes of the records, are kept in memory. `None` if there are no records, or if
    /// another process uses them.
    pub(crate) fn open_unchanged(
        plan: &Plan,
        directory: &Path,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Option<Self>> {
        let stored = match is_configured(plan) {
            true => None,
            false => StateDirectory::examine_secret(directory, StateDirectory::BROKER_KEYS)
                .map_err(|error| unusable(&error))?,
        };
        let stored = stored.map(|text| parse(directory, &text)).transpose()?;
        let records = FileRecords::open_unchanged(directory, Arc::clone(&clock))
            .map_err(|error| anyhow!(unusable_records(&error)))?;
        let in_memory = Self::in_memory(plan, clock)?;
        Ok(records.map(|records| Self {
            records: Arc::new(records),
            keys: stored.map_or(in_memory.keys, KeysOrigin::Generated),
            keys_file: stored_keys_file(plan, directory),
            records_file: Some(directory.join(StateDirectory::RECORDS)),
            is_shared: false,
        }))
    }
}

/// Returns why a server with a broker does not start without its state directory, and the fixes.
pub(crate) fn refusal(error: &StateError) -> String {
    format!(
        "state_dir: {error}; or set state_dir to another directory; or set state_dir = \"off\", with which all users must sign in \
         again after each start [{}]",
        error.code()
    )
}

/// Returns why a server does not start with the records in its state directory, and the fixes.
fn unusable_records(error: &RecordError) -> String {
    format!(
        "state_dir: {error}; or set state_dir to another directory, which signs all users out [{}]",
        error.code()
    )
}

/// Returns why a server does not start whose records were sealed with other keys, and the fixes.
/// `keys` is the file with the keys, if they are in the state directory.
pub(crate) fn foreign_records(records: &Path, keys: Option<&Path>) -> Diagnostic {
    let records = records.display();
    let (keys, both) = match keys {
        Some(keys) => (keys.display().to_string(), "delete both files"),
        None => (KEYS.to_owned(), "delete the file with the records"),
    };
    diagnostic(&format!(
        "the records in {records} were written with other keys than those in {keys}; restore these keys from a backup, or {both} to \
         start without records, which signs all users out"
    ))
}

/// Returns why a replica does not start whose keys are not those of the others, and the fixes.
pub(crate) fn foreign_shared_records() -> Diagnostic {
    diagnostic(
        "the shared records of the broker were written with other keys; give every replica the same keys, or delete the records of \
         the broker in Redis to start without records, which signs all users out",
    )
}

fn is_configured(plan: &Plan) -> bool {
    plan.broker
        .as_ref()
        .is_some_and(|broker| broker.keys.is_some())
}

/// Returns the file of the keys in a state directory. `None` if others are configured.
fn stored_keys_file(plan: &Plan, directory: &Path) -> Option<PathBuf> {
    (!is_configured(plan)).then(|| directory.join(StateDirectory::BROKER_KEYS))
}

impl KeysOrigin {
    /// Returns the keys for a plan that has no keys or, if it has some, these. Reads the file in
    /// the state directory again, and fails if it cannot be used.
    pub(crate) fn current(
        &self,
        configured: Option<&Arc<BrokerKeys>>,
    ) -> anyhow::Result<Arc<BrokerKeys>> {
        match (configured, self) {
            (Some(keys), _) => Ok(Arc::clone(keys)),
            (None, Self::Generated(keys)) => Ok(Arc::clone(keys)),
            (None, Self::Stored(stored)) => stored.read(),
            // A reload cannot remove configured keys.
            (None, Self::Configured) => bail!("the keys of the broker are not configured any more"),
        }
    }
}

impl StoredKeys {
    fn open(directory: &StateDirectory) -> anyhow::Result<Self> {
        let text = directory
            .secret_file_or_generate(StateDirectory::BROKER_KEYS, || BrokerKeys::generate().ok());
        let text = text.map_err(|error| unusable(&error))?;
        let keys = parse(directory.path(), &text)?;
        Ok(Self {
            directory: directory.clone(),
            current: Mutex::new((text, keys)),
        })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join(StateDirectory::BROKER_KEYS)
    }

    /// Returns the keys in the file. They are the same value as before if the file has the same
    /// content.
    pub(crate) fn read(&self) -> anyhow::Result<Arc<BrokerKeys>> {
        let text = self.directory.secret_file(StateDirectory::BROKER_KEYS);
        let text = text.map_err(|error| unusable(&error))?;
        let path = self.path();
        let missing = || {
            let text = format!(
                "the file {} does not exist any more; restore it: without it, all users must sign in again",
                path.display()
            );
            diagnostic(&text)
        };
        let text = text.ok_or_else(missing)?;
        let mut current = self.current.lock();
        if *current.0 != *text {
            let keys = parse(self.directory.path(), &text)?;
            *current = (text, keys);
        }
        Ok(Arc::clone(&current.1))
    }
}

impl fmt::Debug for StoredKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredKeys")
            .field("directory", &self.directory.path())
            .finish_non_exhaustive()
    }
}

fn parse(directory: &Path, text: &str) -> Result<Arc<BrokerKeys>, Diagnostic> {
    BrokerKeys::parse(text).map(Arc::new).map_err(|error| {
        diagnostic(&format!(
            "the keys in {} cannot be used: {error}; restore the file from a backup, or delete it to get new keys, which signs all \
             users out",
            directory.join(StateDirectory::BROKER_KEYS).display()
        ))
    })
}

fn unusable(error: &StateError) -> Diagnostic {
    diagnostic(&format!(
        "the keys of the broker cannot be read: {error} [{}]",
        error.code()
    ))
}

fn diagnostic(text: &str) -> Diagnostic {
    Diagnostic::new(&KeyPath::parse(KEYS), text)
}
