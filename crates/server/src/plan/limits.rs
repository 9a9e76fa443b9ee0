//! Limits: validation of `[limits]`, apart from rates.

use crate::config::{Diagnostics, Limits, Span};

/// Adds an error for each limit that is out of its range. Returns whether there is none.
pub(super) fn check(limits: &Limits, errors: &mut Diagnostics<'_>) -> bool {
    let counts = [
        ("max_body", limits.max_body, 1 << 10, 1 << 30),
        ("body_budget", limits.body_budget, limits.max_body, 1 << 36),
        ("max_depth", limits.max_depth, 8, 127),
        ("max_token", limits.max_token, 1 << 10, 64 << 10),
        ("max_connections", limits.max_connections, 1, 1_000_000),
        // By default, it is max_connections.
        ("upstream_connections", limits.upstream_connections.unwrap_or(1), 1, 1_000_000),
        ("max_headers", limits.max_headers, 16, 10_000),
        ("max_streams", limits.max_streams as usize, 1, 10_000),
        ("max_resets", limits.max_resets, 1, 10_000),
        ("cached_tokens", limits.cached_tokens, 16, 10_000_000),
        ("in_flight_per_principal", limits.in_flight_per_principal, 1, 1_000_000),
    ];
    let times = [
        ("header_timeout", limits.header_timeout, Span::secs(600)),
        ("body_pause", limits.body_pause, Span::secs(600)),
        ("body_timeout", limits.body_timeout, Span::secs(60 * 60)),
    ];
    let outside = counts.into_iter().filter(|(_, value, low, high)| !(low..=high).contains(&value));
    let outside = outside.map(|(name, value, low, high)| format!("limits.{name} = {value} is outside {low} to {high}"));
    let too_long = times.into_iter().filter(|(_, value, high)| !(&Span::secs(1)..=high).contains(&value));
    let too_long = too_long.map(|(name, value, high)| format!("limits.{name} = \"{value}\" is outside 1s to {high}"));
    let found: Vec<String> = outside.chain(too_long).collect();
    found.iter().for_each(|text| errors.add("limits", text));
    found.is_empty()
}
