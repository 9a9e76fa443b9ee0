//! Lifetimes of tokens, grants and checks.

use anyhow::ensure;
use portcullis_broker::Lifetimes;

use crate::{Diagnostics, Span, file::Broker};

const MINUTE: Span = Span::secs(60);
const HOUR: Span = Span::secs(60 * 60);
const DAY: Span = Span::secs(24 * 60 * 60);
const MONTH: Span = Span::secs(30 * 24 * 60 * 60);
const TWO_YEARS: Span = Span::secs(2 * 365 * 24 * 60 * 60);

/// The shortest and the longest value, and both as text.
struct Range(Span, Span, &'static str);

const ACCESS_TOKEN: Range = Range(MINUTE, DAY, "1m to 24h");
const GRANT: Range = Range(MINUTE, TWO_YEARS, "1m to 730d");
const REUSE: Range = Range(Span::secs(0), HOUR, "0s to 1h");
const CHECK: Range = Range(MINUTE, MONTH, "1m to 30d");

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
    let grant = grant_lifetime.unwrap_or(Span::new(Lifetimes::default().grant));
    let mut check =
        |name: &str, span, range: &Range| errors.take(name, check_range(name, span, range));
    let access_token = check(
        "access_token_lifetime",
        *access_token_lifetime,
        &ACCESS_TOKEN,
    );
    let grant_in_range = check("grant_lifetime", grant, &GRANT);
    let reuse = check("refresh_reuse", *refresh_reuse, &REUSE);
    let rechecked = check("recheck", *recheck, &CHECK);
    let unchecked = check("max_unchecked", *max_unchecked, &CHECK);
    // Two that are in their ranges are compared also if others are not.
    let grant_checked = access_token
        .and(grant_in_range)
        .and_then(|()| errors.take("grant_lifetime", check_grant(grant, *access_token_lifetime)));
    let unchecked = rechecked
        .and(unchecked)
        .and_then(|()| errors.take("max_unchecked", check_unchecked(*max_unchecked, *recheck)));
    reuse.and(grant_checked).and(unchecked)?;
    Some(Lifetimes {
        access_token: access_token_lifetime.0,
        grant: grant.0,
        refresh_reuse: refresh_reuse.0,
        recheck: recheck.0,
        max_unchecked: max_unchecked.0,
    })
}

fn check_range(name: &str, span: Span, range: &Range) -> anyhow::Result<()> {
    let Range(shortest, longest, text) = range;
    ensure!(
        (*shortest..=*longest).contains(&span),
        "{name} = \"{span}\" is outside {text}"
    );
    Ok(())
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
