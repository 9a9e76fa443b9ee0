//! Retries, the stop and lost spans, with a receiver in memory and a paused clock.

use parking_lot::Mutex;
use portcullis_testkit::{FetchFn, Reply};
use tokio::time::timeout;

use super::*;

const ENDPOINT: &str = "https://otlp.example.com/v1/traces";

/// J7: a batch is sent again after 1, 2 and 4 seconds, and is lost then.
#[tokio::test(start_paused = true)]
async fn an_unavailable_receiver_gets_three_retries() {
    for status in [429, 502, 503, 504] {
        let trial = Trial::start(move |_| Some(Reply::status(status)));
        trial.queue(1);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(trial.times_of_requests(), vec![0, 1, 3, 7], "{status}");
        assert_eq!(trial.traces.lost(), 1, "{status}");
    }
    let trial = Trial::start(|_| None);
    trial.queue(2);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        trial.times_of_requests(),
        vec![0, 1, 3, 7],
        "refused connections"
    );
    assert_eq!(trial.traces.lost(), 2, "refused connections");
}

/// J7: nothing is lost if a retry succeeds.
#[tokio::test(start_paused = true)]
async fn a_retry_can_succeed() {
    let trial = Trial::start(|earlier| Some(Reply::status(if earlier < 2 { 503 } else { 200 })));
    trial.queue(1);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(trial.times_of_requests(), vec![0, 1, 3]);
    assert_eq!(trial.traces.lost(), 0);
}

/// J7: a batch that the receiver rejects is not sent again.
#[tokio::test(start_paused = true)]
async fn a_rejected_batch_is_sent_once() {
    for status in [302, 400, 401, 413, 500] {
        let trial = Trial::start(move |_| Some(Reply::status(status)));
        trial.queue(3);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(trial.times_of_requests(), vec![0], "{status}");
        assert_eq!(trial.traces.lost(), 3, "{status}");
    }
}

/// J7: `Retry-After` lengthens the wait, up to the maximum.
#[tokio::test(start_paused = true)]
async fn the_receiver_can_ask_for_a_longer_wait() {
    for (retry_after, times) in [
        ("10", [0, 10, 20, 30]),
        ("2", [0, 2, 4, 8]),
        ("0", [0, 1, 3, 7]),
        ("86400", [0, 30, 60, 90]),
        ("Fri, 31 Dec 1999 23:59:59 GMT", [0, 1, 3, 7]),
    ] {
        let trial = Trial::start(move |_| {
            Some(Reply::status(503).header(header::RETRY_AFTER, retry_after))
        });
        trial.queue(1);
        sleep(Duration::from_secs(120)).await;
        assert_eq!(trial.times_of_requests(), times, "{retry_after}");
    }
}

/// J7: the stop ends the wait for a retry. The batch is sent once more, and what is still queued is
/// sent once.
#[tokio::test(start_paused = true)]
async fn the_stop_ends_retries() {
    let trial = Trial::start(|_| Some(Reply::status(503)));
    trial.queue(1);
    sleep(Duration::from_millis(3500)).await;
    trial.queue(1);
    let Trial {
        times,
        stop,
        task,
        traces,
        ..
    } = trial;
    stop.send(()).unwrap();
    timeout(Duration::from_millis(1), task)
        .await
        .expect("it ends without a wait")
        .unwrap();
    assert_eq!(*times.lock(), [0, 1, 3, 3, 3]);
    assert_eq!(traces.lost(), 2);
}

/// J7: at the stop, everything that is queued is sent, in batches.
#[tokio::test(start_paused = true)]
async fn the_stop_sends_the_queue() {
    let trial = Trial::start(|_| Some(Reply::status(200)));
    sleep(Duration::from_millis(100)).await;
    trial.queue(2 * MAX_BATCH + 1);
    let Trial {
        times,
        stop,
        task,
        traces,
        ..
    } = trial;
    stop.send(()).unwrap();
    timeout(Duration::from_millis(1), task)
        .await
        .expect("it ends without a wait")
        .unwrap();
    assert_eq!(times.lock().len(), 3);
    assert_eq!(traces.lost(), 0);
}

/// J7: losses are logged at intervals even if the queue is never empty.
#[tokio::test(start_paused = true)]
async fn losses_are_logged_under_load() {
    let (queue, queued) = mpsc::channel(16);
    queue.try_send(()).unwrap();
    let refilling = FetchFn::new(move |_| {
        let _ = queue.try_send(());
        Some(Reply::status(503))
    });
    let (traces, _) = Traces::new();
    let mut exporter = exporter(refilling, traces.clone());
    let (_stop, stopped) = oneshot::channel();
    let run = exporter.run(queued, encode, stopped);
    timeout(Duration::from_secs(600), run)
        .await
        .expect_err("the queue is never empty");

    // Every 7 seconds a batch is lost, with what was queued at each of its 4 attempts.
    assert!((300..350).contains(&traces.lost()), "{}", traces.lost());
    assert!(
        traces.lost() - exporter.reported < 40,
        "{}",
        exporter.reported
    );
    let since = exporter.reported_at.unwrap().elapsed();
    assert!(
        since < REPORT_INTERVAL + Duration::from_secs(7),
        "{since:?}"
    );
}

/// J7: the first loss is logged at once, later ones after the interval or at the end.
#[tokio::test(start_paused = true)]
async fn losses_are_logged_at_intervals_and_at_the_end() {
    let (traces, _) = Traces::new();
    let mut exporter = exporter(FetchFn::new(|_| None), traces.clone());
    exporter.report_lost_at_intervals();
    assert_eq!(exporter.reported_at, None, "nothing was lost");

    for (seconds, reported) in [(0, 1), (1, 1), (58, 1), (1, 4), (59, 4)] {
        sleep(Duration::from_secs(seconds)).await;
        traces.lose(1);
        exporter.report_lost_at_intervals();
        assert_eq!(exporter.reported, reported);
    }
    let (_queue, queued) = mpsc::channel(1);
    let (stop, stopped) = oneshot::channel();
    stop.send(()).unwrap();
    exporter.run(queued, encode, stopped).await;
    assert_eq!(exporter.reported, 5);
}

/// A running exporter and its receiver.
struct Trial {
    queue: mpsc::Sender<()>,
    traces: Traces,
    /// The seconds from the start to each request.
    times: Arc<Mutex<Vec<u64>>>,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Trial {
    /// Starts an exporter. `respond` gets the number of earlier requests.
    fn start(respond: impl Fn(usize) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let times = Arc::new(Mutex::new(Vec::new()));
        let start = Instant::now();
        let recorded = Arc::clone(&times);
        let receiver = FetchFn::new(move |_| {
            let mut times = recorded.lock();
            times.push(start.elapsed().as_secs());
            respond(times.len() - 1)
        });
        let (traces, _) = Traces::new();
        let (queue, queued) = mpsc::channel(4 * MAX_BATCH);
        let (stop, stopped) = oneshot::channel();
        let mut exporter = exporter(receiver, traces.clone());
        let task = tokio::spawn(async move { exporter.run(queued, encode, stopped).await });
        Self {
            queue,
            traces,
            times,
            stop,
            task,
        }
    }

    fn queue(&self, requests: usize) {
        for _ in 0..requests {
            self.queue.try_send(()).unwrap();
        }
    }

    fn times_of_requests(&self) -> Vec<u64> {
        self.times.lock().clone()
    }
}

fn exporter(receiver: Arc<FetchFn>, traces: Traces) -> Exporter {
    let endpoint = Url::parse(ENDPOINT).unwrap();
    Exporter::with_fetch(
        receiver,
        endpoint,
        HeaderMap::new(),
        Service {
            name: "portcullis".to_owned(),
            version: "1.0.0",
        },
        traces,
    )
}

/// The content of requests does not matter here.
fn encode(_: &Service, _requests: &[()]) -> Vec<u8> {
    Vec::new()
}
