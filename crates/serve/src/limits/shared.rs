use std::sync::Arc;

use portcullis_config::plan::Plan;
use portcullis_endpoint::BodyBudget;
use portcullis_guard::limit::{ConcurrencyLimiter, GuardLimits, Rate, RateLimiter};
use portcullis_metadata::Clock;

/// The limits that all resources share, so that using several does not raise them.
pub(crate) struct SharedLimits {
    /// The settings that they were created with.
    settings: Settings,
    pub(crate) guard: GuardLimits,
    pub(crate) body_budget: Arc<BodyBudget>,
}

/// The settings of the limits.
#[derive(Clone, Copy)]
struct Settings {
    per_address: Option<Rate>,
    rejected_per_address: Option<Rate>,
    per_principal: Option<Rate>,
    /// The number of counters of each rate limit.
    entries: usize,
    in_flight: InFlight,
    /// In bytes.
    body_budget: usize,
}

/// The maximum numbers of requests and of open streams of a principal.
#[derive(Clone, Copy, PartialEq, Eq)]
struct InFlight {
    requests: usize,
    streams: usize,
}

impl SharedLimits {
    /// Returns the limits of a plan. Those whose settings are equal to the previous ones are kept,
    /// with their counts.
    pub(crate) fn new(plan: &Plan, clock: &Arc<dyn Clock>, previous: Option<&Self>) -> Self {
        let settings = Settings {
            per_address: plan.rates.per_address,
            rejected_per_address: plan.rates.rejected_per_address,
            per_principal: plan.rates.per_principal,
            entries: plan.rates.entries,
            // A session has one stream on which its client listens, so streams have the limit of
            // sessions.
            in_flight: InFlight {
                requests: plan.limits.in_flight_per_principal,
                streams: plan.session.settings.max_per_owner,
            },
            body_budget: plan.limits.body_budget,
        };
        let limiter = |rate: fn(&Settings) -> Option<Rate>,
                       kept: fn(&GuardLimits) -> &Option<Arc<RateLimiter>>| {
            let inputs = |settings: &Settings| (rate(settings), settings.entries);
            match previous.filter(|previous| inputs(&previous.settings) == inputs(&settings)) {
                Some(previous) => kept(&previous.guard).clone(),
                None => rate(&settings)
                    .map(|rate| RateLimiter::new(rate, settings.entries, Arc::clone(clock))),
            }
        };
        let mut guard = GuardLimits::default();
        guard.per_address = limiter(|settings| settings.per_address, |guard| &guard.per_address);
        guard.rejected_per_address = limiter(
            |settings| settings.rejected_per_address,
            |guard| &guard.rejected_per_address,
        );
        guard.per_principal = limiter(
            |settings| settings.per_principal,
            |guard| &guard.per_principal,
        );
        guard.in_flight =
            match previous.filter(|previous| previous.settings.in_flight == settings.in_flight) {
                Some(previous) => previous.guard.in_flight.clone(),
                None => Some(ConcurrencyLimiter::new(
                    settings.in_flight.requests,
                    settings.in_flight.streams,
                )),
            };
        let body_budget = match previous
            .filter(|previous| previous.settings.body_budget == settings.body_budget)
        {
            Some(previous) => Arc::clone(&previous.body_budget),
            None => BodyBudget::new(settings.body_budget),
        };
        Self {
            settings,
            guard,
            body_budget,
        }
    }

    /// Returns the size of the budget of request bodies in bytes.
    pub(crate) fn body_budget_bytes(&self) -> usize {
        self.settings.body_budget
    }

    /// Returns the limits that replicas count together, by name.
    pub(crate) fn named(&self) -> impl Iterator<Item = (String, &Arc<RateLimiter>)> {
        let limits = [
            ("per_address", &self.guard.per_address),
            ("per_principal", &self.guard.per_principal),
        ];
        limits
            .into_iter()
            .filter_map(|(name, limit)| Some((name.to_owned(), limit.as_ref()?)))
    }
}
