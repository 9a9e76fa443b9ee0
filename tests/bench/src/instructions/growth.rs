//! The comparison of a count with the committed one.

use super::{case::Case, table::Counts};

/// The permitted growth of a case, as a part of its committed count: 1 %.
pub(super) const PERMITTED: f64 = 0.01;
/// The number of functions that an explanation lists.
const LISTED: usize = 12;

/// Returns whether a case has grown by more than is permitted. One without a committed count has.
pub(super) fn has_grown(counts: &Counts, committed: Option<&Counts>) -> bool {
    committed.is_none_or(|committed| change(counts, committed) > PERMITTED)
}

/// Returns a line of the report.
pub(super) fn line(case: Case, counts: &Counts, committed: Option<&Counts>) -> String {
    let name = case.name();
    match committed {
        None => format!("{name:<16}{:>10} (not in the table)", counts.instructions),
        Some(committed) => {
            let change = 100.0 * change(counts, committed);
            format!("{name:<16}{:>10} ({} in the table, {change:+.2} %)", counts.instructions, committed.instructions)
        }
    }
}

/// Returns the functions that grew most, one a line.
pub(super) fn explanation(counts: &Counts, committed: Option<&Counts>) -> String {
    let before =
        |name: &str| committed.and_then(|committed| committed.functions.get(name)).copied().unwrap_or_default();
    let mut grown: Vec<_> = counts
        .functions
        .iter()
        .map(|(name, count)| (count.saturating_sub(before(name)), name))
        .filter(|(growth, _)| *growth > 0)
        .collect();
    grown.sort_by_key(|(growth, _)| std::cmp::Reverse(*growth));
    let lines = grown.into_iter().take(LISTED).map(|(growth, name)| format!("  {growth:>+8} {name}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the growth as a part of the committed count.
fn change(counts: &Counts, committed: &Counts) -> f64 {
    counts.instructions as f64 / committed.instructions as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: u64, functions: &[(&str, u64)]) -> Counts {
        Counts { instructions, functions: functions.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect() }
    }

    #[test]
    fn one_per_cent_is_permitted() {
        let committed = counts(50_000, &[]);
        assert!(!has_grown(&counts(50_500, &[]), Some(&committed)));
        assert!(has_grown(&counts(50_501, &[]), Some(&committed)));
        assert!(has_grown(&counts(1, &[]), None));
    }

    #[test]
    fn the_functions_that_grew_are_named() {
        let committed = counts(1_000, &[("verify", 400), ("log", 600)]);
        let grown = counts(1_300, &[("verify", 650), ("log", 590), ("clock", 60)]);
        let lines = explanation(&grown, Some(&committed));
        assert_eq!(lines.lines().map(str::trim).collect::<Vec<_>>(), ["+250 verify", "+60 clock"]);
    }
}
