//! The ends of a subject's clients: a subject that registers many clients must not fill the table
//! of scopes.

use portcullis_metadata::UnixTime;

use super::Ends;
use crate::scope::ScopeId;

impl Ends {
    /// Counts an owner whose end was added for its subject. If the subject has too many owners,
    /// raises a floor of the subject in place of the ends of some of them, and returns it: a
    /// quarter of the limit at once, so that this is rare.
    pub(crate) fn limit_subject(
        &self,
        subject: ScopeId,
        owner: ScopeId,
        now: UnixTime,
    ) -> Option<(ScopeId, UnixTime)> {
        let limit = self.limits.owners_per_subject;
        let mut owners = self.subjects.entry(subject).or_default();
        owners.insert(owner);
        if owners.len() <= limit {
            return None;
        }
        // The others' ends have expired, or another floor has replaced them.
        owners.retain(|owner| self.scopes.contains_key(owner));
        let mut floors: Vec<u64> = owners
            .iter()
            .filter_map(|owner| Some(self.scopes.get(owner)?.including_floor()))
            .collect();
        let excess = floors
            .len()
            .checked_sub(limit)
            .filter(|excess| *excess > 0)?;
        let last_replaced = (excess + limit / 4).min(floors.len()) - 1;
        let valid_from = *floors.select_nth_unstable(last_replaced).1;
        let created = UnixTime::from_millis(valid_from.saturating_sub(1));
        let replaced: Vec<ScopeId> = owners.iter().copied().collect();
        // Raising a floor can remove unused subjects, which takes their locks.
        drop(owners);
        self.raise(Some(subject), created, now);
        for owner in &replaced {
            self.scopes.remove_if_mut(owner, |_, ends| {
                let before = ends.tombstones().len();
                ends.remove_before(valid_from);
                self.update_count(before, ends.tombstones().len());
                ends.valid_from() <= valid_from && ends.tombstones().is_empty()
            });
        }
        if let Some(mut owners) = self.subjects.get_mut(&subject) {
            owners.retain(|owner| self.scopes.contains_key(owner));
        }
        Some((subject, created))
    }

    /// Removes the owners without ends, and the subjects without owners.
    pub(super) fn remove_unused_subjects(&self) {
        self.subjects.retain(|_, owners| {
            owners.retain(|owner| self.scopes.contains_key(owner));
            !owners.is_empty()
        });
    }
}
