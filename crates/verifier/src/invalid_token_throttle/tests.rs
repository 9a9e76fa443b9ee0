//! Invalid tokens take at most a tenth of the time, and valid ones are not delayed.

use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use portcullis_testkit::ManualClock;

use super::{
    charges::{MAX_CHARGE, SERVING_PERIOD},
    *,
};
use crate::testing::settle;

const MILLI: Duration = Duration::from_millis(1);

/// Returns the throttle of a thread that has just served a cached token, and its clock.
fn throttle() -> (Arc<Throttle>, ManualClock) {
    let throttle = Arc::<Throttle>::default();
    let clock = ManualClock::new();
    serve(&throttle, &clock);
    (throttle, clock)
}

fn serve(throttle: &Throttle, clock: &ManualClock) {
    throttle.charges.record_served(clock.monotonic());
}

fn try_acquire<'c>(throttle: &Arc<Throttle>, clock: &'c ManualClock) -> Option<Permit<'c>> {
    throttle.try_acquire(clock, clock.monotonic())
}

/// Rejects a token whose signature takes a millisecond.
fn reject(throttle: &Arc<Throttle>, clock: &ManualClock) {
    let permit = try_acquire(throttle, clock).unwrap();
    clock.advance(MILLI);
    drop(permit);
}

/// Advances both clocks by one millisecond at a time while cached tokens are served.
async fn pass(throttle: &Throttle, clock: &ManualClock, millis: u32) {
    for _ in 0..millis {
        clock.advance(MILLI);
        serve(throttle, clock);
        tokio::time::advance(MILLI).await;
        settle().await;
    }
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

/// Valid tokens are not charged.
#[test]
fn valid_tokens_are_not_charged() {
    let (throttle, clock) = throttle();
    for _ in 0..100 {
        let permit = try_acquire(&throttle, &clock).unwrap();
        clock.advance(MILLI);
        serve(&throttle, &clock);
        permit.accept();
    }
    assert!(try_acquire(&throttle, &clock).is_some());
}

/// While cached tokens are served, rejected ones take at most a tenth of the time.
#[test]
fn rejected_tokens_take_a_tenth() {
    let (throttle, clock) = throttle();
    let mut rejected = 0;
    for _ in 0..1_000 {
        match try_acquire(&throttle, &clock) {
            Some(permit) => {
                rejected += 1;
                clock.advance(MILLI);
                drop(permit);
            }
            None => clock.advance(MILLI),
        }
        serve(&throttle, &clock);
    }

    // The first token uses the credit.
    assert_eq!(rejected, 101);
}

/// Unused time gives a credit of at most two milliseconds.
#[test]
fn unused_time_gives_little_credit() {
    let (throttle, clock) = throttle();
    clock.advance(Duration::from_secs(3_600));
    serve(&throttle, &clock);
    reject(&throttle, &clock);
    serve(&throttle, &clock);
    assert_eq!(throttle.charges.paid_off(), clock.monotonic() + 8 * MILLI);
}

/// On an idle server, a token does not wait, even after earlier rejections.
#[test]
fn no_token_waits_unless_cached_tokens_are_served() {
    let (throttle, clock) = throttle();
    reject(&throttle, &clock);
    assert!(try_acquire(&throttle, &clock).is_none());
    // The last cached token was served a millisecond ago.
    clock.advance(3 * MILLI);
    assert_eq!(throttle.charges.delay(clock.monotonic()), MILLI);
    clock.advance(MILLI);
    assert!(try_acquire(&throttle, &clock).is_some());
    serve(&throttle, &clock);
    assert!(try_acquire(&throttle, &clock).is_none());
}

/// A thread that was suspended during a signature check is charged for a signature check, not for
/// the pause.
#[test]
fn the_charge_is_bounded() {
    let (throttle, clock) = throttle();
    let permit = try_acquire(&throttle, &clock).unwrap();
    clock.advance(Duration::from_secs(60));
    drop(permit);
    serve(&throttle, &clock);
    assert_eq!(throttle.charges.delay(clock.monotonic()), 5 * MILLI);
    pass_to(&throttle, &clock, 17);
    assert!(try_acquire(&throttle, &clock).is_none());
    pass_to(&throttle, &clock, 1);
    assert!(try_acquire(&throttle, &clock).is_some());
}

fn pass_to(throttle: &Throttle, clock: &ManualClock, millis: u32) {
    clock.advance(MILLI * millis);
    serve(throttle, clock);
}

/// The debt is at most that of two milliseconds of signatures.
#[test]
fn the_debt_is_bounded() {
    let (throttle, clock) = throttle();
    for _ in 0..100 {
        throttle
            .charges
            .add(clock.monotonic(), Duration::from_secs(1));
    }
    assert!(try_acquire(&throttle, &clock).is_none());
    pass_to(&throttle, &clock, 19);
    assert!(try_acquire(&throttle, &clock).is_none());
    pass_to(&throttle, &clock, 1);
    assert!(try_acquire(&throttle, &clock).is_some());
}

/// Times of another clock are ignored.
#[test]
fn other_clocks_are_ignored() {
    let (throttle, clock) = throttle();
    throttle
        .charges
        .add(clock.monotonic() + Duration::from_secs(60), MAX_CHARGE);
    assert!(try_acquire(&throttle, &clock).is_some());

    let (throttle, clock) = self::throttle();
    reject(&throttle, &clock);
    throttle.charges.record_served(clock.monotonic() + MILLI);
    assert!(try_acquire(&throttle, &clock).is_some());
}

/// No token waits outside a runtime.
#[test]
fn no_token_waits_without_a_runtime() {
    let (throttle, clock) = throttle();
    reject(&throttle, &clock);
    serve(&throttle, &clock);
    assert!(try_acquire(&throttle, &clock).is_none());
    let mut permit = Box::pin(throttle.acquire(&clock, deadline()));
    let polled = permit
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(_))));
}

/// Waiting tokens get their permits in order, and new tokens queue behind them.
#[tokio::test(start_paused = true)]
async fn permits_are_issued_in_order() {
    let (throttle, clock) = throttle();
    reject(&throttle, &clock);
    let order = Arc::new(Mutex::new(Vec::<u32>::new()));
    for number in 0..3 {
        let throttle = Arc::clone(&throttle);
        let clock = clock.clone();
        let order = Arc::clone(&order);
        tokio::spawn(async move {
            let permit = throttle.acquire(&clock, deadline()).await.unwrap();
            order.lock().push(number);
            clock.advance(MILLI);
            drop(permit);
        });
    }
    settle().await;
    let permits = || order.lock().clone();
    pass(&throttle, &clock, 7).await;
    assert!(permits().is_empty());

    pass(&throttle, &clock, 2).await;
    assert_eq!(permits(), [0]);
    assert!(try_acquire(&throttle, &clock).is_none());
    pass(&throttle, &clock, 10).await;
    assert_eq!(permits(), [0, 1]);

    pass(&throttle, &clock, 10).await;
    assert_eq!(permits(), [0, 1, 2]);
    pass(&throttle, &clock, 10).await;
    assert!(try_acquire(&throttle, &clock).is_some());
}

/// Waiting ends when no cached token is served.
#[tokio::test(start_paused = true)]
async fn waiting_ends_when_no_cached_token_is_served() {
    let (throttle, clock) = throttle();
    throttle.charges.add(clock.monotonic(), MAX_CHARGE);
    let waiting = {
        let throttle = Arc::clone(&throttle);
        let clock = clock.clone();
        tokio::spawn(async move {
            throttle
                .acquire(&clock, deadline())
                .await
                .map(Permit::accept)
        })
    };
    settle().await;
    clock.advance(SERVING_PERIOD);
    tokio::time::advance(SERVING_PERIOD + MILLI).await;
    settle().await;
    assert!(waiting.is_finished());
    waiting.await.unwrap().unwrap();
}

/// The number of waiting tokens is bounded. A dropped future leaves the queue.
#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded() {
    let (throttle, clock) = throttle();
    reject(&throttle, &clock);
    let wait = || {
        let throttle = Arc::clone(&throttle);
        let clock = clock.clone();
        async move {
            throttle
                .acquire(&clock, deadline())
                .await
                .map(Permit::accept)
        }
    };
    let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| tokio::spawn(wait())).collect();
    settle().await;
    assert_eq!(wait().await.unwrap_err(), VerifyError::Busy);
    assert_eq!(
        wait().await.unwrap_err(),
        VerifyError::Busy,
        "a rejected token does not count"
    );

    for task in waiting.drain(..MAX_WAITING - 1) {
        task.abort();
    }
    settle().await;
    let last = tokio::spawn(wait());
    settle().await;
    assert!(!last.is_finished());

    pass(&throttle, &clock, 10).await;
    for waited in waiting.into_iter().chain([last]) {
        waited.await.unwrap().unwrap();
    }
    assert_eq!(throttle.waiting.load(Ordering::Relaxed), 0);
    assert!(try_acquire(&throttle, &clock).is_some());
}

/// Waiting ends at the deadline.
#[tokio::test(start_paused = true)]
async fn waiting_ends_at_the_deadline() {
    let (throttle, clock) = throttle();
    reject(&throttle, &clock);
    let given_up = tokio::spawn({
        let throttle = Arc::clone(&throttle);
        let clock = clock.clone();
        async move {
            throttle
                .acquire(&clock, Instant::now() + 3 * MILLI)
                .await
                .map(Permit::accept)
        }
    });
    pass(&throttle, &clock, 3).await;
    assert_eq!(given_up.await.unwrap().unwrap_err(), VerifyError::Busy);
    assert_eq!(throttle.waiting.load(Ordering::Relaxed), 0);
}
