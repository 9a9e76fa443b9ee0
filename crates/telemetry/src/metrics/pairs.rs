use std::borrow::Cow;

use parking_lot::Mutex;

use super::{exposition::Exposition, family::Family};

/// The maximum number of pairs. Configured names and codes of the program have fewer.
const MAX_PAIRS: usize = 1024;

/// Counts by a configured name, or a text of the program, and a text of the program.
#[derive(Debug, Default)]
pub(super) struct PairCounts(Mutex<Vec<(Cow<'static, str>, &'static str, u64)>>);

impl PairCounts {
    /// Counts one for a text of the program.
    pub(super) fn add(&self, first: &'static str, second: &'static str) {
        self.count(first, second, || Cow::Borrowed(first));
    }

    /// Counts one for a configured name.
    pub(super) fn add_named(&self, name: &str, second: &'static str) {
        self.count(name, second, || Cow::Owned(name.to_owned()));
    }

    fn count(&self, first: &str, second: &'static str, new: impl FnOnce() -> Cow<'static, str>) {
        let mut counts = self.0.lock();
        let known = counts
            .iter_mut()
            .find(|(known, code, _)| known == first && *code == second);
        if let Some((_, _, count)) = known {
            *count += 1;
        } else if counts.len() < MAX_PAIRS {
            counts.push((new(), second, 1));
        }
    }

    /// Writes each count, with its pair as labels of these names.
    pub(super) fn write(&self, out: &mut Exposition, family: &Family, labels: [&str; 2]) {
        let mut counts = self.0.lock().clone();
        counts.sort_unstable();
        for (first, second, count) in counts {
            out.value(family, &[(labels[0], &first), (labels[1], second)], count);
        }
    }
}
