//! Rate limits.

use std::net::IpAddr;

use portcullis_testkit::ManualClock;

use super::*;

fn rate(requests: u32, secs: u64) -> Rate {
    Rate::new(requests, Duration::from_secs(secs)).unwrap()
}

fn limiter(rate: Rate, capacity: usize) -> (ManualClock, Arc<RateLimiter>) {
    let clock = ManualClock::new();
    (clock.clone(), RateLimiter::new(rate, capacity, Arc::new(clock)))
}

fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

/// Returns the number of these requests that are allowed.
fn passing(limiter: &RateLimiter, address: Option<IpAddr>, requests: usize) -> usize {
    (0..requests).filter(|_| limiter.check_address(address).is_ok()).count()
}

/// J5: a burst of the full rate is allowed, and then one request at a time. The wait is reported.
#[test]
fn a_rate_is_used_up_and_recovers() {
    let (clock, limiter) = limiter(rate(6, 60), 100);
    let one = address("192.0.2.1");
    assert_eq!(passing(&limiter, one, 10), 6);
    assert_eq!(limiter.check_address(one), Err(LimitExceeded { retry_after: Duration::from_secs(10) }));
    clock.advance(Duration::from_secs(4));
    assert_eq!(limiter.check_address(one), Err(LimitExceeded { retry_after: Duration::from_secs(6) }));
    clock.advance(Duration::from_secs(6));
    assert_eq!(passing(&limiter, one, 10), 1);
    clock.advance(Duration::from_secs(20));
    assert_eq!(passing(&limiter, one, 10), 2);
    clock.advance(Duration::from_secs(6000));
    assert_eq!(passing(&limiter, one, 10), 6);
}

/// J5: addresses have separate counters. IPv6 uses the first 64 bits; an IPv4 address and its mapped form share one.
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
        assert_eq!(limiter.check_address(address(text)).is_ok(), passes, "{text}");
    }
    assert_eq!(passing(&limiter, None, 2), 1);
}

/// J5: no IPv4 address shares a counter with an IPv6 network, not even with `::/64`.
#[test]
fn address_families_have_separate_counters() {
    let (_, limiter) = limiter(rate(1, 60), 100);
    for (text, passes) in
        [("0.0.0.0", true), ("::1", true), ("::2", false), ("::192.0.2.1", false), ("192.0.2.1", true)]
    {
        assert_eq!(limiter.check_address(address(text)).is_ok(), passes, "{text}");
    }
}

/// J5: a flood of addresses neither grows the table nor evicts other counters, and is itself limited.
#[test]
fn a_flood_of_addresses_is_bounded() {
    let (clock, limiter) = limiter(rate(2, 3600), 64);
    let flood = |limiter: &RateLimiter, network: u8| {
        let addresses = (0..5000_u32).map(|number| IpAddr::from([10, network, (number >> 8) as u8, number as u8]));
        addresses.filter(|address| limiter.check_address(Some(*address)).is_ok()).count()
    };
    let early = address("192.0.2.1");
    assert_eq!(passing(&limiter, early, 3), 2);
    // Each shard holds four counters, and all other keys share two more requests.
    let most = 64 + 16 * 2;
    assert!((64..=most).contains(&flood(&limiter, 1)));
    assert!(flood(&limiter, 2) <= most);
    assert_eq!(passing(&limiter, early, 3), 0);
    // Idle counters are removed.
    clock.advance(Duration::from_secs(7200));
    assert!((64..=most).contains(&flood(&limiter, 3)));
}

#[test]
fn a_full_table_still_limits() {
    let (_, limiter) = limiter(rate(2, 60), 0);
    assert_eq!(passing(&limiter, address("192.0.2.1"), 10), 2);
}

/// J5: a check of a known key allocates nothing.
#[test]
fn a_check_allocates_nothing() {
    let (_, limiter) = limiter(rate(100, 60), 1000);
    limiter.check_address(address("192.0.2.1")).unwrap();
    let counted = allocation_counter::measure(|| limiter.check_address(address("192.0.2.1")).unwrap());
    assert_eq!(counted.count_total, 0);
}

#[test]
fn rates_have_a_range() {
    for (requests, per, error) in [
        (0, Duration::from_secs(1), RateError::Requests),
        (1_000_001, Duration::from_secs(1), RateError::Requests),
        (1, Duration::from_millis(999), RateError::Per),
        (1, Duration::from_secs(24 * 60 * 60 + 1), RateError::Per),
    ] {
        assert_eq!(Rate::new(requests, per), Err(error), "{requests} {per:?}");
    }
    assert_eq!(RateError::Requests.code(), "settings.rate_requests");
    assert_eq!(RateError::Per.code(), "settings.rate_per");
    for (requests, secs) in [(1, 86_400), (1_000_000, 1), (1_000_000, 86_400), (1, 1)] {
        let (_, limiter) = limiter(rate(requests, secs), 100);
        assert!(limiter.check_address(address("192.0.2.1")).is_ok());
    }
}

/// J5: a client that waits for the reported time is allowed.
#[test]
fn waits_are_rounded_up() {
    for (millis, secs) in [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (59_500, 60), (60_000, 60)] {
        assert_eq!(LimitExceeded { retry_after: Duration::from_millis(millis) }.retry_after_secs(), secs, "{millis}");
    }
}

/// E13: limiters that exchange their uses allow one rate together, after the burst that each allows before the first
/// exchange.
#[test]
fn uses_of_other_processes_count() {
    let clock = ManualClock::new();
    let limiters = [0, 1, 2].map(|_| RateLimiter::new(rate(60, 60), 100, Arc::new(clock.clone())));
    assert!(limiters.iter().all(|limiter| limiter.take_uses().is_empty()));
    let one = address("192.0.2.1");
    let exchange = || {
        let uses = limiters.each_ref().map(|limiter| limiter.take_uses());
        for (sender, uses) in uses.iter().enumerate() {
            let others = limiters.iter().enumerate().filter(|(receiver, _)| *receiver != sender);
            others.for_each(|(_, limiter)| limiter.add_uses(uses.iter().copied()));
        }
    };
    assert_eq!(passing(&limiters[0], one, 50), 50);
    assert_eq!(limiters[0].take_uses().iter().map(|(_, count)| *count).collect::<Vec<_>>(), [50]);
    limiters[1].check_address(one).unwrap();
    exchange();
    assert_eq!(passing(&limiters[2], one, 100), 59, "the uses were taken once");
    clock.advance(Duration::from_secs(6000));
    exchange();
    clock.advance(Duration::from_secs(6000));
    let mut allowed = 0;
    for _ in 0..2 * 600 {
        allowed += limiters.iter().map(|limiter| passing(limiter, one, 5)).sum::<usize>();
        exchange();
        clock.advance(Duration::from_millis(500));
    }
    // 600 s at 1 request per second, and the first burst.
    assert!((600..=600 + 3 * 60).contains(&allowed), "{allowed}");
}

/// E13: uses of others delay a client by at most one more period.
#[test]
fn uses_of_other_processes_are_bounded() {
    let (clock, limiter) = limiter(rate(6, 60), 100);
    let one = address("192.0.2.1");
    assert_eq!(passing(&limiter, one, 1), 1);
    assert!(limiter.take_uses().is_empty(), "uses before the first call are not counted by key");
    clock.advance(Duration::from_secs(10));
    assert_eq!(passing(&limiter, one, 1), 1);
    let uses = limiter.take_uses();
    limiter.add_uses([(uses[0].0, u32::MAX)]);
    assert_eq!(passing(&limiter, one, 1), 0);
    clock.advance(Duration::from_secs(69));
    assert_eq!(passing(&limiter, one, 1), 0);
    clock.advance(Duration::from_secs(1));
    assert_eq!(passing(&limiter, one, 2), 1);
}
