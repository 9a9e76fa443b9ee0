//! The comparison of a count with the committed one.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{case::Case, counts::Counts};

/// The permitted change of a case, in per cent of its committed count.
const PERMITTED: u64 = 1;
/// The number of functions that an explanation lists.
const LISTED: usize = 12;

/// Returns whether a case has grown or shrunk by more than is permitted. One without a committed
/// count has.
pub(super) fn has_changed(counts: &Counts, committed: Option<&Counts>) -> bool {
    committed.is_none_or(|committed| {
        let change = difference(counts.instructions, committed.instructions).unsigned_abs();
        change * 100 > committed.instructions * PERMITTED
    })
}

/// Returns the counts that differ least from the committed ones. Without those, the lower ones.
pub(super) fn nearest(counts: [Counts; 2], committed: Option<&Counts>) -> Counts {
    let committed = committed.map_or(0, |committed| committed.instructions);
    let change = |counts: &Counts| difference(counts.instructions, committed).unsigned_abs();
    let [one, other] = counts;
    if change(&other) < change(&one) {
        other
    } else {
        one
    }
}

/// Returns a line of the report.
pub(super) fn line(case: Case, counts: &Counts, committed: Option<&Counts>) -> String {
    let (name, now) = (case.name(), counts.instructions);
    match committed {
        None => format!("{name:<16}{now:>10}  (not in the table)"),
        Some(committed) => {
            let change = 100.0 * (counts.instructions as f64 / committed.instructions as f64 - 1.0);
            format!(
                "{name:<16}{now:>10}  ({} in the table, {change:+.2} %)",
                committed.instructions
            )
        }
    }
}

/// Returns the functions that changed most in the direction of the case, one a line, and the sum of
/// all others.
pub(super) fn explanation(counts: &Counts, committed: &Counts) -> String {
    let total = difference(counts.instructions, committed.instructions);
    let names: BTreeSet<_> = counts
        .functions
        .keys()
        .chain(committed.functions.keys())
        .collect();
    let mut changed: Vec<_> = names
        .into_iter()
        .map(|name| (known_change(name, counts, committed), name))
        .filter(|(change, _)| change.signum() == total.signum())
        .collect();
    changed.sort_by_key(|(change, _)| Reverse(change.abs()));
    changed.truncate(LISTED);
    let others = total - changed.iter().map(|(change, _)| change).sum::<i64>();
    let mut lines: Vec<_> = changed
        .iter()
        .map(|(change, name)| format!("  {change:>+8}  {name}"))
        .collect();
    lines.push(format!("  {others:>+8}  in all other functions"));
    lines.join("\n")
}

/// Returns the change of a function. One that is not listed has at most what a listed one has at
/// least, and counts with that.
fn known_change(name: &str, counts: &Counts, committed: &Counts) -> i64 {
    let of = |counts: &Counts| {
        counts
            .functions
            .get(name)
            .copied()
            .unwrap_or_else(|| Counts::least(counts.instructions))
    };
    difference(of(counts), of(committed))
}

fn difference(now: u64, before: u64) -> i64 {
    now.cast_signed() - before.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: u64, functions: &[(&str, u64)]) -> Counts {
        Counts {
            instructions,
            functions: functions
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
        }
    }

    /// N2: growth of more than 1 % is reported.
    #[test]
    fn one_per_cent_is_permitted() {
        let committed = counts(50_000, &[]);
        for permitted in [49_500, 50_500] {
            assert!(!has_changed(&counts(permitted, &[]), Some(&committed)));
        }
        for changed in [49_499, 50_501] {
            assert!(has_changed(&counts(changed, &[]), Some(&committed)));
        }
        assert!(has_changed(&counts(1, &[]), None));
    }

    #[test]
    fn the_count_that_differs_least_is_kept() {
        let committed = counts(50_000, &[]);
        for (pair, expected) in [
            ([51_000, 50_100], 50_100),
            ([49_000, 49_900], 49_900),
            ([49_900, 52_000], 49_900),
        ] {
            let pair = pair.map(|instructions| counts(instructions, &[]));
            assert_eq!(nearest(pair, Some(&committed)).instructions, expected);
        }
        let pair = [2, 1].map(|instructions| counts(instructions, &[]));
        assert_eq!(nearest(pair, None).instructions, 1);
    }

    #[test]
    fn the_functions_that_grew_are_named() {
        let committed = counts(1_000, &[("verify", 400), ("log", 595)]);
        let grown = counts(1_300, &[("verify", 650), ("log", 585), ("clock", 60)]);
        let lines = explanation(&grown, &committed);
        let lines: Vec<_> = lines.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            ["+250  verify", "+55  clock", "-5  in all other functions"]
        );
    }

    #[test]
    fn the_functions_that_shrank_are_named() {
        let committed = counts(1_000, &[("verify", 400), ("log", 600)]);
        let lines = explanation(&counts(850, &[("verify", 250), ("log", 600)]), &committed);
        assert_eq!(lines.lines().next().map(str::trim), Some("-150  verify"));
    }
}
