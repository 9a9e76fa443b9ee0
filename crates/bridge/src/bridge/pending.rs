use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::HeaderValue;
use tokio::{
    sync::{oneshot, watch},
    task::AbortHandle,
};

use super::{
    kept::Change,
    message::{Id, Message},
    sse::Link,
};

/// The requests that are under way, by their identifiers. What is not here is answered, refused or cancelled, and
/// nothing more is said about it.
#[derive(Default)]
pub(super) struct Pending(Mutex<HashMap<Id, Entry>>);

/// A request that is under way.
pub(super) struct Entry {
    pub(super) asker: Asker,
    pub(super) purpose: Purpose,
    /// What stops it.
    pub(super) stop: Option<AbortHandle>,
    /// Dropped with the entry: whoever watches it learns that there is nothing left to wait for.
    _over: watch::Sender<()>,
}

/// Who waits for the answer.
pub(super) enum Asker {
    Client,
    Bridge(oneshot::Sender<Message>),
}

/// What the answer means to the bridge itself.
pub(super) enum Purpose {
    /// Nothing.
    Plain,
    /// It changes what the session keeps up.
    Keeps(Change),
    /// It opens a session, under this identifier or over this connection.
    Initialize { identifier: Option<HeaderValue>, link: Option<Arc<Link>> },
    /// It tells which arguments travel as headers.
    ModernToolsList,
    /// Nothing, and the server speaks 2026-07-28.
    Modern,
}

impl Pending {
    /// Begins a request. None when one with this identifier is under way, or `max` are.
    pub(super) fn begin(&self, id: Id, asker: Asker, purpose: Purpose, max: usize) -> Option<watch::Receiver<()>> {
        let mut entries = self.entries();
        if entries.len() >= max || entries.contains_key(&id) {
            return None;
        }
        let (over, watched) = watch::channel(());
        entries.insert(id, Entry { asker, purpose, stop: None, _over: over });
        Some(watched)
    }

    /// Makes a request one that can be stopped.
    pub(super) fn stoppable(&self, id: &Id, stop: AbortHandle) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.stop = Some(stop);
        }
    }

    /// Takes note of how the session is reached that a request is going to open.
    pub(super) fn opens(&self, id: &Id, identifier: Option<HeaderValue>, link: Option<Arc<Link>>) {
        if let Some(entry) = self.entries().get_mut(id)
            && matches!(entry.purpose, Purpose::Initialize { .. })
        {
            entry.purpose = Purpose::Initialize { identifier, link };
        }
    }

    /// Ends a request.
    pub(super) fn take(&self, id: &Id) -> Option<Entry> {
        self.entries().remove(id)
    }

    /// Ends all requests of the client.
    pub(super) fn take_all(&self) -> Vec<(Id, Entry)> {
        self.entries().drain().filter(|(_, entry)| matches!(entry.asker, Asker::Client)).collect()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Id, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
