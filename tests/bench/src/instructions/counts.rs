//! [`Counts`]: the instructions of one request.

use std::collections::BTreeMap;

use super::profile::Profile;

/// The instructions of one request of a case.
pub(super) struct Counts {
    pub(super) instructions: u64,
    /// Those of the functions that need at least [`Self::least`], without those of the functions
    /// that they call.
    pub(super) functions: BTreeMap<String, u64>,
}

impl Counts {
    /// Returns the counts of one request of this many.
    pub(super) fn of(profile: &Profile, requests: u32) -> Self {
        let each = |count: i64| count.max(0).cast_unsigned() / u64::from(requests);
        let instructions = each(profile.total());
        let functions = profile
            .functions
            .iter()
            .map(|(name, count)| (name.clone(), each(*count)));
        let least = Self::least(instructions);
        Self {
            instructions,
            functions: functions.filter(|(_, count)| *count >= least).collect(),
        }
    }

    /// Returns the instructions from which on a function is listed: 0.5 % of the request.
    pub(super) const fn least(instructions: u64) -> u64 {
        instructions / 200
    }

    /// Returns the functions, the most expensive first.
    pub(super) fn sorted(&self) -> Vec<(&str, u64)> {
        let mut functions: Vec<_> = self
            .functions
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        functions
    }
}
