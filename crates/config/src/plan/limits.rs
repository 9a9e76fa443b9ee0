//! Limits: validation of `[limits]`, apart from rates.

use crate::{Diagnostics, KeyPath, Span, file::Limits, schema, size};

/// The largest `max_body`, in bytes.
const MAX_BODY: usize = 1 << 30;

/// Adds an error for each limit that is out of its range. Returns whether there is none.
pub(super) fn check(limits: &Limits, errors: &mut Diagnostics<'_>) -> bool {
    // Without `..`: a new limit does not compile until it has a range.
    let Limits {
        max_body,
        body_budget,
        max_depth,
        max_token,
        max_connections,
        upstream_connections,
        max_headers,
        header_timeout,
        body_pause,
        body_timeout,
        max_streams,
        max_resets,
        cached_tokens,
        in_flight_per_principal,
        // `rates::plan` checks these.
        per_address: _,
        rejected_per_address: _,
        per_principal: _,
        rate_entries: _,
    } = *limits;
    let counts = [
        ("max_body", max_body, 1 << 10..=MAX_BODY),
        // `max_body` has its own error, below.
        ("body_budget", body_budget, 1 << 10..=1 << 36),
        ("max_depth", max_depth, 8..=127),
        ("max_token", max_token, 1 << 10..=64 << 10),
        ("max_connections", max_connections, 1..=1_000_000),
        // The default is max_connections.
        (
            "upstream_connections",
            upstream_connections.unwrap_or(1),
            1..=1_000_000,
        ),
        ("max_headers", max_headers, 16..=10_000),
        ("max_streams", max_streams as usize, 1..=10_000),
        ("max_resets", max_resets, 1..=10_000),
        ("cached_tokens", cached_tokens, 16..=10_000_000),
        (
            "in_flight_per_principal",
            in_flight_per_principal,
            1..=1_000_000,
        ),
    ];
    let times = [
        ("header_timeout", header_timeout, Span::secs(600)),
        ("body_pause", body_pause, Span::secs(600)),
        ("body_timeout", body_timeout, Span::secs(60 * 60)),
    ];
    let mut is_valid = true;
    let mut reject = |text: String| {
        is_valid = false;
        errors.add("limits", text);
    };
    for (name, value, range) in counts {
        if !range.contains(&value) {
            let unit = schema::unit(&KeyPath::from_names(["limits", name]));
            let fix = match unit {
                "" => String::new(),
                _ => size::if_mebibytes(value as u64, *range.end() as u64),
            };
            reject(format!(
                "limits.{name} = {value} is outside {} to {}{unit}{fix}",
                range.start(),
                range.end()
            ));
        }
    }
    if max_body > body_budget && max_body <= MAX_BODY {
        // A budget that is not in the file is not to blame.
        reject(if body_budget == Limits::default().body_budget {
            format!(
                "limits.max_body = {max_body} is above {body_budget}, the default of body_budget, which is the size of all \
                 bodies together; make it smaller, or set body_budget"
            )
        } else {
            format!(
                "limits.body_budget = {body_budget} is below max_body = {max_body}, the size of one body; make it larger"
            )
        });
    }
    for (name, value, longest) in times {
        if !(Span::secs(1)..=longest).contains(&value) {
            reject(format!(
                "limits.{name} = \"{value}\" is outside 1s to {longest}"
            ));
        }
    }
    is_valid
}
