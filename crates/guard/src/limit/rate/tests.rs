//! A rate per address is enforced, bounded in memory, and shared among processes that exchange
//! their uses.

use std::net::IpAddr;

use portcullis_testkit::ManualClock;

use super::{super::key::SHARDS, *};

/// More requests than any rate here allows at once.
const MANY: usize = 100;

fn rate(requests: u32, secs: u64) -> Rate {
    Rate::new(requests, Duration::from_secs(secs)).unwrap()
}

fn limiter(rate: Rate, capacity: usize) -> (ManualClock, Arc<RateLimiter>) {
    let clock = ManualClock::new();
    (
        clock.clone(),
        RateLimiter::new(rate, capacity, Arc::new(clock)),
    )
}

fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

/// Sends requests from this address and returns how many are allowed.
fn allowed(limiter: &RateLimiter, address: Option<IpAddr>, requests: usize) -> usize {
    (0..requests)
        .filter(|_| limiter.check_address(address).is_ok())
        .count()
}

/// J5: a burst of the full rate is allowed, and then one request at a time. The wait is reported.
#[test]
fn a_rate_is_used_up_and_recovers() {
    let (clock, limiter) = limiter(rate(6, 60), 100);
    let client = address("192.0.2.1");
    let wait = |secs| {
        Err(LimitExceeded {
            retry_after: Duration::from_secs(secs),
        })
    };
    assert_eq!(allowed(&limiter, client, MANY), 6);
    assert_eq!(limiter.check_address(client), wait(10));
    clock.advance(Duration::from_secs(4));
    assert_eq!(limiter.check_address(client), wait(6));

    for (idle_secs, expected) in [(6, 1), (20, 2), (6000, 6)] {
        clock.advance(Duration::from_secs(idle_secs));
        assert_eq!(
            allowed(&limiter, client, MANY),
            expected,
            "after {idle_secs} s"
        );
    }
}

/// J5: addresses have separate counters. IPv6 uses the first 64 bits; an IPv4 address and its
/// mapped form share one.
#[test]
fn addresses_have_separate_counters() {
    let (_, limiter) = limiter(rate(1, 60), 100);
    for (text, passes) in [
        ("192.0.2.1", true),
        ("192.0.2.2", true),
        ("::ffff:192.0.2.1", false),
        ("2001:db8:0:1::1", true),
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", false),
        ("2001:db8:0:2::1", true),
    ] {
        assert_eq!(
            limiter.check_address(address(text)).is_ok(),
            passes,
            "{text}"
        );
    }
    assert_eq!(allowed(&limiter, None, 2), 1);
}

/// J5: neither an IPv4 address nor a missing one shares a counter with an IPv6 network, not even
/// with `::/64`.
#[test]
fn address_families_have_separate_counters() {
    let (_, limiter) = limiter(rate(1, 60), 100);
    assert!(limiter.check_address(None).is_ok());
    for (text, passes) in [
        ("0.0.0.0", true),
        ("::1", true),
        ("::2", false),
        ("::192.0.2.1", false),
        ("192.0.2.1", true),
    ] {
        assert_eq!(
            limiter.check_address(address(text)).is_ok(),
            passes,
            "{text}"
        );
    }
}

/// J5: a flood of addresses neither grows the table nor evicts other counters, and is itself
/// limited.
#[test]
fn a_flood_of_addresses_is_bounded() {
    const BURST: usize = 2;
    const CAPACITY: usize = 4 * SHARDS;

    /// Each address of a flood sends one request. Those without a counter share the burst of their
    /// shard's overflow counter.
    const MAX_ALLOWED: usize = CAPACITY + SHARDS * BURST;

    let (clock, limiter) = limiter(rate(2, 3600), CAPACITY);
    let flood = |network: u8| {
        let addresses = (0..5000_u16)
            .map(|host| IpAddr::from([10, network, host.to_be_bytes()[0], host.to_be_bytes()[1]]));
        addresses
            .filter(|address| limiter.check_address(Some(*address)).is_ok())
            .count()
    };
    let early = address("192.0.2.1");
    assert_eq!(allowed(&limiter, early, MANY), BURST);

    // The early address has one of the counters. The flood uses up the others and all overflow
    // counters.
    assert_eq!(flood(1), MAX_ALLOWED - 1);
    assert_eq!(flood(2), 0);
    assert_eq!(allowed(&limiter, early, MANY), 0, "its counter is kept");

    // All counters are idle, so the flood gets them all.
    clock.advance(Duration::from_secs(7200));
    assert_eq!(flood(3), MAX_ALLOWED);
}

/// J5: without capacity, all addresses share the overflow counters.
#[test]
fn a_table_without_capacity_still_limits() {
    let (_, limiter) = limiter(rate(2, 60), 0);
    assert_eq!(allowed(&limiter, address("192.0.2.1"), MANY), 2);
}

/// J5: a check of a known key allocates nothing.
#[test]
fn a_check_allocates_nothing() {
    let (_, limiter) = limiter(rate(100, 60), 1000);
    limiter.check_address(address("192.0.2.1")).unwrap();
    let counted =
        allocation_counter::measure(|| limiter.check_address(address("192.0.2.1")).unwrap());
    assert_eq!(counted.count_total, 0);
}

#[test]
fn rates_out_of_range_are_rejected() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    for (requests, per, error) in [
        (0, Duration::from_secs(1), RateError::Requests),
        (1_000_001, Duration::from_secs(1), RateError::Requests),
        (1, Duration::from_millis(999), RateError::Per),
        (1, DAY + Duration::from_secs(1), RateError::Per),
    ] {
        assert_eq!(
            Rate::new(requests, per),
            Err(error),
            "{requests} per {per:?}"
        );
    }
    assert_eq!(RateError::Requests.code(), "settings.rate_requests");
    assert_eq!(RateError::Per.code(), "settings.rate_per");
}

#[test]
fn the_extreme_rates_allow_a_request() {
    for (requests, secs) in [(1, 1), (1, 86_400), (1_000_000, 1), (1_000_000, 86_400)] {
        let (_, limiter) = limiter(rate(requests, secs), 100);
        assert!(
            limiter.check_address(address("192.0.2.1")).is_ok(),
            "{requests} per {secs} s"
        );
    }
}

/// E13: limiters that exchange their uses allow one rate together, after the burst that each allows
/// before the first exchange.
#[test]
fn uses_of_other_processes_count() {
    const BURST: usize = 60;
    let clock = ManualClock::new();
    let limiters = [0, 1, 2].map(|_| RateLimiter::new(rate(60, 60), 100, Arc::new(clock.clone())));
    let client = address("192.0.2.1");

    // Uses are counted from the first call on.
    assert!(
        limiters
            .iter()
            .all(|limiter| limiter.take_uses().is_empty())
    );
    assert_eq!(allowed(&limiters[0], client, 50), 50);
    let uses = limiters[0].take_uses();
    assert_eq!(uses.len(), 1);
    assert_eq!(uses[0].1, 50);

    limiters[1].check_address(client).unwrap();
    exchange(&limiters);
    assert_eq!(
        allowed(&limiters[2], client, MANY),
        BURST - 1,
        "the 50 uses were taken before the exchange"
    );

    clock.advance(Duration::from_secs(6000));
    exchange(&limiters);
    clock.advance(Duration::from_secs(6000));
    const SECONDS: usize = 600;
    let mut total = 0;
    for _ in 0..2 * SECONDS {
        total += limiters
            .iter()
            .map(|limiter| allowed(limiter, client, 5))
            .sum::<usize>();
        exchange(&limiters);
        clock.advance(Duration::from_millis(500));
    }

    // One request per second, and the first burst of each limiter.
    assert!(
        (SECONDS..=SECONDS + limiters.len() * BURST).contains(&total),
        "{total}"
    );
}

/// Gives the uses of each limiter to all others.
fn exchange(limiters: &[Arc<RateLimiter>; 3]) {
    let uses = limiters.each_ref().map(|limiter| limiter.take_uses());
    for (sender, uses) in uses.iter().enumerate() {
        for (receiver, limiter) in limiters.iter().enumerate() {
            if receiver != sender {
                limiter.add_uses(uses.iter().copied());
            }
        }
    }
}

/// E13: uses of others delay a client by at most one more period.
#[test]
fn uses_of_other_processes_are_bounded() {
    let (clock, limiter) = limiter(rate(6, 60), 100);
    let client = address("192.0.2.1");
    limiter.check_address(client).unwrap();
    assert!(
        limiter.take_uses().is_empty(),
        "uses before the first call are not counted by key"
    );

    clock.advance(Duration::from_secs(10));
    limiter.check_address(client).unwrap();
    let key = limiter.take_uses()[0].0;
    limiter.add_uses([(key, u32::MAX)]);
    assert!(limiter.check_address(client).is_err());

    // The uses delay the full rate to two periods from now, so that the first request is allowed 50
    // s earlier.
    clock.advance(Duration::from_secs(69));
    assert!(limiter.check_address(client).is_err());
    clock.advance(Duration::from_secs(1));
    assert_eq!(allowed(&limiter, client, 2), 1);
}
