//! How much each principal used each resource and tool.

use hashbrown::HashTable;

/// What was used, by whom: rows up to a limit, and one row for everything beyond.
pub(super) struct Usage {
    rows: HashTable<Row>,
    other: Counts,
    max_rows: usize,
}

struct Row {
    /// The JSON members that say who used what.
    who: Box<[u8]>,
    hash: u64,
    counts: Counts,
}

/// What one row counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// All requests, whatever became of them.
    pub(super) requests: u64,
    /// Those of them that were refused.
    pub(super) denied: u64,
    /// Those that got no proper answer: no upstream, or no client any more.
    pub(super) failed: u64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Allow,
    Deny,
    Fail,
}

impl Counts {
    pub(super) fn one(outcome: Outcome) -> Self {
        Self { requests: 1, denied: u64::from(outcome == Outcome::Deny), failed: u64::from(outcome == Outcome::Fail) }
    }

    fn add(&mut self, more: Self) {
        self.requests += more.requests;
        self.denied += more.denied;
        self.failed += more.failed;
    }
}

impl Usage {
    pub(super) fn new(max_rows: usize) -> Self {
        Self { rows: HashTable::new(), other: Counts::default(), max_rows }
    }

    /// Counts. A row that exists already costs no allocation. The hash is always the same of one who.
    pub(super) fn count(&mut self, who: &[u8], hash: u64, counts: Counts) {
        if let Some(row) = self.rows.find_mut(hash, |row| *row.who == *who) {
            row.counts.add(counts);
        } else if self.rows.len() < self.max_rows {
            self.rows.insert_unique(hash, Row { who: who.into(), hash, counts }, |row| row.hash);
        } else {
            self.other.add(counts);
        }
    }

    /// Moves everything into another table.
    pub(super) fn drain_into(&mut self, into: &mut Self) {
        for row in self.rows.drain() {
            into.count(&row.who, row.hash, row.counts);
        }
        into.other.add(std::mem::take(&mut self.other));
    }

    /// The rows, in no order, and the row of everything that found none.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Option<&[u8]>, Counts)> {
        let other = (self.other.requests > 0).then_some((None, self.other));
        self.rows.iter().map(|row| (Some(&*row.who), row.counts)).chain(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J4: the table is bounded, rows are told apart by whom they are about, whatever its hash, and nothing that is
    /// used goes uncounted.
    #[test]
    fn what_finds_no_row_is_counted_together() {
        let mut usage = Usage::new(2);
        for who in ["a", "b", "c", "a", "d"] {
            usage.count(who.as_bytes(), 7, Counts::one(Outcome::Allow));
        }
        usage.count(b"a", 7, Counts::one(Outcome::Deny));
        usage.count(b"e", 7, Counts::one(Outcome::Fail));
        let mut collected = Usage::new(1);
        usage.drain_into(&mut collected);
        let requests: u64 = collected.rows().map(|(_, counts)| counts.requests).sum();
        assert_eq!(requests, 7);
        assert_eq!((collected.rows.len(), collected.rows().count()), (1, 2));
        let (denied, failed) =
            collected.rows().fold((0, 0), |(denied, failed), (_, row)| (denied + row.denied, failed + row.failed));
        assert_eq!((denied, failed), (1, 1));
        assert_eq!(usage.rows().count(), 0, "it was moved");
    }
}
