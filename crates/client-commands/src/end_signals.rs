//! [`EndSignals`]: the end of a client command by a signal, without the loss of a sign-in.

use std::{
    future::Future,
    io,
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use portcullis_client::TokenManager;
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::{sleep, timeout},
};

/// SIGINT and SIGTERM. A thread of its own ends the process if the command does not end within
/// [`END_LIMIT`] after a signal, because it computes, waits for a file, or writes to a pipe that is
/// full.
pub(crate) struct EndSignals {
    signals: Signals,
    /// Whether the command waits for a refresh, for which the thread gives it [`REFRESH_LIMIT`]
    /// more.
    is_refreshing: Arc<AtomicBool>,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// The time in which the command must end after a signal, unless it waits for a refresh. A bridge
/// takes up to 1 s.
const END_LIMIT: Duration = Duration::from_millis(1_800);

/// The limit of the wait for refreshes in progress.
const REFRESH_LIMIT: Duration = Duration::from_secs(10);
/// The time after which the user learns what is waited for.
const NOTICE_DELAY: Duration = Duration::from_millis(500);

impl EndSignals {
    /// Starts to receive the signals, which do not end the process from now on. Fails when the
    /// operating system does.
    pub(crate) fn listen() -> io::Result<Self> {
        let signals = Signals::listen()?;
        let is_refreshing = Arc::new(AtomicBool::new(false));
        // The command's own runtime has one thread, which the command can block.
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let of_thread = {
            let _context = runtime.enter();
            Signals::listen()?
        };
        let refreshing = Arc::clone(&is_refreshing);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(end_if_late(of_thread, &refreshing)))?;
        Ok(Self {
            signals,
            is_refreshing,
        })
    }

    /// Waits for the next signal, and returns the exit code of a program that it ends.
    pub(crate) async fn next(&mut self) -> ExitCode {
        ExitCode::from(self.signals.next().await)
    }

    /// Waits for the refresh requests that were sent, at most [`REFRESH_LIMIT`], or until the next
    /// signal: a server that rotates refresh tokens has invalidated the stored one.
    pub(crate) async fn finish_refreshes(&mut self, token_manager: &TokenManager) {
        self.is_refreshing.store(true, Ordering::Relaxed);
        let finished = async {
            if timeout(NOTICE_DELAY, token_manager.finish_refreshes())
                .await
                .is_err()
            {
                tracing::info!(
                    "waiting for the new token that was requested; another signal ends this at once"
                );
                token_manager.finish_refreshes().await;
            }
        };
        tokio::select! {
            finished = timeout(REFRESH_LIMIT, finished) => {
                if finished.is_err() {
                    tracing::warn!("the new token did not arrive; if the server rotates refresh tokens, sign in again");
                }
            }
            _ = self.next() => {}
        }
        self.is_refreshing.store(false, Ordering::Relaxed);
    }
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal, and returns the exit code of a program that it ends.
    async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        };
        u8::try_from(128 + kind.as_raw_value()).unwrap_or(u8::MAX)
    }
}

/// Waits for a signal, and ends the process if the command does not end in time.
async fn end_if_late(mut signals: Signals, is_refreshing: &AtomicBool) {
    let code = signals.next().await;
    sleep(END_LIMIT).await;
    if is_refreshing.load(Ordering::Relaxed) {
        sleep(REFRESH_LIMIT).await;
    }
    process::exit(code.into());
}

/// Runs a command until it ends or a signal arrives, and waits for the refresh requests that it has
/// sent. Fails when the command fails, or when signals cannot be received.
pub(crate) async fn until_signal(
    token_manager: &TokenManager,
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let mut signals = EndSignals::listen()?;
    let result = tokio::select! {
        result = command => result,
        code = signals.next() => Ok(code),
    };
    signals.finish_refreshes(token_manager).await;
    result
}
