//! The resources of earlier configurations, whose requests can still open sessions and event streams.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use portcullis_guard::ProtectedResource;

use super::{Resource, ServerState};

/// The resources of earlier configurations that requests in progress may still use.
pub(super) struct ReplacedResources {
    resources: Vec<Weak<ProtectedResource>>,
    /// Whether no request uses them, and what their requests have opened has ended.
    is_settled: AtomicBool,
}

impl ReplacedResources {
    /// Returns the resources of `previous`, and those that it has replaced, except the `current` ones.
    pub(super) fn new(previous: Option<&ServerState>, current: &[Arc<Resource>]) -> Self {
        let mut resources: Vec<Weak<ProtectedResource>> = Vec::new();
        if let Some(previous) = previous {
            let earlier = previous.replaced.resources.iter().filter(|resource| resource.strong_count() > 0);
            resources.extend(earlier.cloned());
            resources.extend(previous.resources.iter().map(|resource| Arc::downgrade(&resource.protected)));
        }
        let is_current = |replaced: &Weak<ProtectedResource>| {
            current.iter().any(|resource| std::ptr::eq(Arc::as_ptr(&resource.protected), replaced.as_ptr()))
        };
        resources.retain(|replaced| !is_current(replaced));
        Self { resources, is_settled: AtomicBool::new(previous.is_none()) }
    }

    /// Returns the resources that requests still use.
    pub(super) fn in_use(&self) -> impl Iterator<Item = Arc<ProtectedResource>> {
        self.resources.iter().filter_map(Weak::upgrade)
    }

    /// Returns whether no request can open anything with them, and what was opened has ended.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Relaxed)
    }

    /// Records that what their requests have opened has ended. Call this only if none was [in use](Self::in_use) before.
    pub(super) fn set_settled(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
    }
}
