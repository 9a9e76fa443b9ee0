use std::{
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use portcullis_testkit::ManualClock;

use super::*;
use crate::testing::settle;

const MILLI: Duration = Duration::from_millis(1);

/// A lane on a thread that has just served a known token, and a clock that both read.
fn lane() -> (Arc<Lane>, ManualClock) {
    let (lane, clock) = (Arc::<Lane>::default(), ManualClock::new());
    serve(&lane, &clock);
    (lane, clock)
}

fn serve(lane: &Lane, clock: &ManualClock) {
    lane.served.store(nanos(clock.monotonic()), Ordering::Relaxed);
}

fn at_once<'c>(lane: &Arc<Lane>, clock: &'c ManualClock) -> Option<Turn<'c>> {
    lane.turn_at_once(clock, clock.monotonic())
}

/// A refused token whose signature takes a millisecond.
fn refuse(lane: &Arc<Lane>, clock: &ManualClock) {
    let turn = at_once(lane, clock).unwrap();
    clock.advance(MILLI);
    drop(turn);
}

/// Moves both clocks, a millisecond at a time; known tokens are served all the while.
async fn pass(lane: &Lane, clock: &ManualClock, millis: u32) {
    for _ in 0..millis {
        clock.advance(MILLI);
        serve(lane, clock);
        tokio::time::advance(MILLI).await;
        settle().await;
    }
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

/// Where no token was refused nobody waits, however many good ones come and however long each takes.
#[test]
fn good_tokens_owe_nothing() {
    let (lane, clock) = lane();
    for _ in 0..100 {
        let turn = at_once(&lane, &clock).unwrap();
        clock.advance(MILLI);
        serve(&lane, &clock);
        turn.accept();
    }
    assert!(at_once(&lane, &clock).is_some());
}

/// While known tokens are served, refused ones take a tenth of the time and no more.
#[test]
fn refused_tokens_take_a_tenth() {
    let (lane, clock) = lane();
    let mut refused = 0;
    for _ in 0..1_000 {
        match at_once(&lane, &clock) {
            Some(turn) => {
                refused += 1;
                clock.advance(MILLI);
                drop(turn);
            }
            None => clock.advance(MILLI),
        }
        serve(&lane, &clock);
    }
    // The first one has the time that was saved.
    assert_eq!(refused, 101);
}

/// Time that refused tokens did not take is not saved up, but for two milliseconds of it.
#[test]
fn a_quiet_past_buys_nothing() {
    let (lane, clock) = lane();
    clock.advance(Duration::from_secs(3_600));
    serve(&lane, &clock);
    refuse(&lane, &clock);
    serve(&lane, &clock);
    assert_eq!(lane.made_up.load(Ordering::Relaxed), nanos(clock.monotonic() + 8 * MILLI));
}

/// In a quiet server a token waits for nobody, whatever was refused before.
#[test]
fn a_quiet_server_lets_nobody_wait() {
    let (lane, clock) = lane();
    refuse(&lane, &clock);
    assert!(at_once(&lane, &clock).is_none());
    // The last known token was a millisecond ago.
    clock.advance(3 * MILLI);
    assert_eq!(lane.wait(clock.monotonic()), MILLI);
    clock.advance(MILLI);
    assert!(at_once(&lane, &clock).is_some());
    serve(&lane, &clock);
    assert!(at_once(&lane, &clock).is_none());
}

/// A thread that was put aside in the middle of a signature is charged for a signature, not for the pause.
#[test]
fn a_pause_is_not_charged() {
    let (lane, clock) = lane();
    let turn = at_once(&lane, &clock).unwrap();
    clock.advance(Duration::from_secs(60));
    drop(turn);
    serve(&lane, &clock);
    assert_eq!(lane.wait(clock.monotonic()), 5 * MILLI);
    pass_to(&lane, &clock, 17);
    assert!(at_once(&lane, &clock).is_none());
    pass_to(&lane, &clock, 1);
    assert!(at_once(&lane, &clock).is_some());
}

fn pass_to(lane: &Lane, clock: &ManualClock, millis: u32) {
    clock.advance(MILLI * millis);
    serve(lane, clock);
}

/// No more is ever owed than two milliseconds of signatures, so that nobody waits long for a turn that is due.
#[test]
fn debts_are_bounded() {
    let (lane, clock) = lane();
    for _ in 0..100 {
        lane.charge(clock.monotonic(), Duration::from_secs(1));
    }
    assert!(at_once(&lane, &clock).is_none());
    pass_to(&lane, &clock, 19);
    assert!(at_once(&lane, &clock).is_none());
    pass_to(&lane, &clock, 1);
    assert!(at_once(&lane, &clock).is_some());
}

/// What another clock has counted holds nobody up.
#[test]
fn other_clocks_do_not_count() {
    let (lane, clock) = lane();
    lane.charge(clock.monotonic() + Duration::from_secs(60), DEAREST);
    assert!(at_once(&lane, &clock).is_some());

    let (lane, clock) = self::lane();
    refuse(&lane, &clock);
    lane.served.store(nanos(clock.monotonic() + MILLI), Ordering::Relaxed);
    assert!(at_once(&lane, &clock).is_some());
}

/// Outside a runtime, where nothing could wake whoever waits, nobody does.
#[test]
fn nobody_waits_without_a_runtime() {
    let (lane, clock) = lane();
    refuse(&lane, &clock);
    serve(&lane, &clock);
    assert!(at_once(&lane, &clock).is_none());
    let mut turn = Box::pin(lane.turn_in_order(&clock, deadline()));
    let polled = turn.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(_))));
}

/// Who comes first is first, one each time that the time is made up for, and nobody slips in before them.
#[tokio::test(start_paused = true)]
async fn the_first_is_first() {
    let (lane, clock) = lane();
    refuse(&lane, &clock);
    let order = Arc::new(Mutex::new(Vec::<u32>::new()));
    for number in 0..3 {
        let (lane, clock, order) = (Arc::clone(&lane), clock.clone(), Arc::clone(&order));
        tokio::spawn(async move {
            let turn = lane.turn_in_order(&clock, deadline()).await.unwrap();
            order.lock().unwrap().push(number);
            clock.advance(MILLI);
            drop(turn);
        });
    }
    settle().await;
    let turns = || order.lock().unwrap().clone();
    pass(&lane, &clock, 7).await;
    assert!(turns().is_empty());
    pass(&lane, &clock, 2).await;
    assert_eq!(turns(), [0]);
    assert!(at_once(&lane, &clock).is_none());
    pass(&lane, &clock, 10).await;
    assert_eq!(turns(), [0, 1]);
    pass(&lane, &clock, 10).await;
    assert_eq!(turns(), [0, 1, 2]);
    pass(&lane, &clock, 10).await;
    assert!(at_once(&lane, &clock).is_some());
}

/// Those who wait are let through as soon as nobody else is served.
#[tokio::test(start_paused = true)]
async fn waiting_ends_when_it_is_quiet() {
    let (lane, clock) = lane();
    lane.charge(clock.monotonic(), DEAREST);
    let waiting = {
        let (lane, clock) = (Arc::clone(&lane), clock.clone());
        tokio::spawn(async move { lane.turn_in_order(&clock, deadline()).await.map(Turn::accept) })
    };
    settle().await;
    clock.advance(BUSY);
    tokio::time::advance(BUSY + MILLI).await;
    settle().await;
    assert!(waiting.is_finished());
    waiting.await.unwrap().unwrap();
}

/// So many tokens wait and no more; one that leaves makes room, and holds nobody up.
#[tokio::test(start_paused = true)]
async fn those_who_wait_are_bounded() {
    let (lane, clock) = lane();
    refuse(&lane, &clock);
    let wait = || {
        let (lane, clock) = (Arc::clone(&lane), clock.clone());
        async move { lane.turn_in_order(&clock, deadline()).await.map(Turn::accept) }
    };
    let mut waiting: Vec<_> = (0..MOST_WAITING).map(|_| tokio::spawn(wait())).collect();
    settle().await;
    assert_eq!(wait().await.unwrap_err(), VerifyError::Busy);
    assert_eq!(wait().await.unwrap_err(), VerifyError::Busy, "one that is turned away takes no place");
    for gone in waiting.drain(..MOST_WAITING - 1) {
        gone.abort();
    }
    settle().await;
    let last = tokio::spawn(wait());
    settle().await;
    assert!(!last.is_finished());
    pass(&lane, &clock, 10).await;
    for waited in waiting.into_iter().chain([last]) {
        waited.await.unwrap().unwrap();
    }
    assert_eq!(lane.waiting.load(Ordering::Relaxed), 0);
    assert!(at_once(&lane, &clock).is_some());
}

/// Nobody waits for longer than its request does.
#[tokio::test(start_paused = true)]
async fn waiting_has_an_end() {
    let (lane, clock) = lane();
    refuse(&lane, &clock);
    let given_up = tokio::spawn({
        let (lane, clock) = (Arc::clone(&lane), clock.clone());
        async move { lane.turn_in_order(&clock, Instant::now() + 3 * MILLI).await.map(Turn::accept) }
    });
    pass(&lane, &clock, 3).await;
    assert_eq!(given_up.await.unwrap().unwrap_err(), VerifyError::Busy);
    assert_eq!(lane.waiting.load(Ordering::Relaxed), 0);
}
