//! Lifetimes of tokens, grants and checks.

use anyhow::ensure;
use portcullis_broker::Lifetimes;

use crate::{Diagnostics, Span, file::Broker};

const MINUTE: Span = Span::secs(60);
const HOUR: Span = Span::secs(60 * 60);
const DAY: Span = Span::secs(24 * 60 * 60);
const MONTH: Span = Span::secs(30 * 24 * 60 * 60);
const TWO_YEARS: Span = Span::secs(2 * 365 * 24 * 60 * 60);

/// Validates the lifetimes. Adds an error for each that is out of its range, or shorter than one
/// that it contains, and returns `None` if there is one.
pub(super) fn plan(broker: &Broker, errors: &mut Diagnostics<'_>) -> Option<Lifetimes> {
    let Broker {
        access_token_lifetime,
        grant_lifetime,
        refresh_reuse,
        recheck,
        max_unchecked,
        ..
    } = broker;
    let grant = grant_lifetime.unwrap_or(Span(Lifetimes::default().grant));
    let ranges = [
        (
            "access_token_lifetime",
            *access_token_lifetime,
            MINUTE,
            "1m",
            DAY,
            "24h",
        ),
        ("grant_lifetime", grant, MINUTE, "1m", TWO_YEARS, "730d"),
        (
            "refresh_reuse",
            *refresh_reuse,
            Span::secs(0),
            "0s",
            HOUR,
            "1h",
        ),
        ("recheck", *recheck, MINUTE, "1m", MONTH, "30d"),
        ("max_unchecked", *max_unchecked, MINUTE, "1m", MONTH, "30d"),
    ];
    let ranges = ranges.map(
        |(name, span, shortest, shortest_text, longest, longest_text)| {
            let result = if (shortest..=longest).contains(&span) {
                Ok(())
            } else {
                Err(anyhow::anyhow!(
                    "{name} = \"{span}\" is outside {shortest_text} to {longest_text}"
                ))
            };
            errors.take(name, result)
        },
    );
    ranges.into_iter().collect::<Option<Vec<()>>>()?;
    let grant_checked = errors.take("grant_lifetime", check_grant(grant, *access_token_lifetime));
    let unchecked = errors.take("max_unchecked", check_unchecked(*max_unchecked, *recheck));
    grant_checked.and(unchecked)?;
    Some(Lifetimes {
        access_token: access_token_lifetime.0,
        grant: grant.0,
        refresh_reuse: refresh_reuse.0,
        recheck: recheck.0,
        max_unchecked: max_unchecked.0,
    })
}

fn check_grant(grant: Span, access_token: Span) -> anyhow::Result<()> {
    ensure!(
        grant >= access_token,
        "grant_lifetime = \"{grant}\" is shorter than access_token_lifetime = \"{access_token}\"; make it longer"
    );
    Ok(())
}

fn check_unchecked(max_unchecked: Span, recheck: Span) -> anyhow::Result<()> {
    ensure!(
        max_unchecked >= recheck,
        "max_unchecked = \"{max_unchecked}\" is shorter than recheck = \"{recheck}\", so that grants would end before their \
         users are checked; make it longer"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Lifetimes that are accepted contain each other, and have bounds.
        #[test]
        fn accepted_lifetimes_are_bounded(seconds in prop::array::uniform5(edges())) {
            let [access_token, grant, refresh_reuse, recheck, max_unchecked] = seconds.map(Span::secs);
            let broker = Broker {
                access_token_lifetime: access_token,
                grant_lifetime: Some(grant),
                refresh_reuse,
                recheck,
                max_unchecked,
                ..Broker::default()
            };
            let planned = Diagnostics::collect(|errors| plan(&broker, &mut errors.table("broker")));
            let is_valid = (MINUTE..=DAY).contains(&access_token)
                && (access_token..=TWO_YEARS).contains(&grant)
                && refresh_reuse <= HOUR
                && (MINUTE..=MONTH).contains(&recheck)
                && (recheck..=MONTH).contains(&max_unchecked);
            prop_assert_eq!(planned.is_ok(), is_valid, "{:?}", planned);
            for error in planned.err().into_iter().flatten() {
                prop_assert!(error.text.starts_with("broker."), "{}", error);
            }
        }
    }

    /// The bounds of the ranges, and numbers beside them.
    fn edges() -> impl Strategy<Value = u64> {
        let bounds = [MINUTE, HOUR, DAY, MONTH, TWO_YEARS].map(|span| span.0.as_secs());
        let around = bounds.map(|bound| bound.saturating_sub(1)..=bound + 1);
        prop_oneof![
            Just(0),
            prop::sample::select(around.into_iter().flatten().collect::<Vec<_>>()),
        ]
    }
}
