use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use portcullis_guard::ProtectedResource;

use super::resource::Resource;

/// The resources of earlier configurations that requests in progress may still use.
pub(super) struct ReplacedResources {
    resources: Vec<Weak<ProtectedResource>>,
    /// Whether no request uses them, and what their requests have opened has ended.
    is_settled: AtomicBool,
}

impl Default for ReplacedResources {
    /// Returns those of a first configuration: none.
    fn default() -> Self {
        Self {
            resources: Vec::new(),
            is_settled: AtomicBool::new(true),
        }
    }
}

impl ReplacedResources {
    /// Returns these and the resources of the `previous` configuration, except the `current` ones.
    pub(super) fn followed_by(
        &self,
        previous: &[Arc<Resource>],
        current: &[Arc<Resource>],
    ) -> Self {
        let earlier = self
            .resources
            .iter()
            .filter(|resource| resource.strong_count() > 0)
            .cloned();
        let replaced = previous
            .iter()
            .map(|resource| Arc::downgrade(&resource.protected));
        let is_current = |replaced: &Weak<ProtectedResource>| {
            current
                .iter()
                .any(|resource| std::ptr::eq(Arc::as_ptr(&resource.protected), replaced.as_ptr()))
        };
        let resources = earlier
            .chain(replaced)
            .filter(|replaced| !is_current(replaced))
            .collect();
        Self {
            resources,
            is_settled: AtomicBool::new(false),
        }
    }

    /// Returns the resources that requests still use.
    pub(super) fn in_use(&self) -> impl Iterator<Item = Arc<ProtectedResource>> {
        self.resources.iter().filter_map(Weak::upgrade)
    }

    /// Returns whether no request can open anything with them, and what was opened has ended.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Relaxed)
    }

    /// Records that what their requests have opened has ended. Call this only if none was [in
    /// use](Self::in_use) before.
    pub(super) fn set_settled(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
    }
}
