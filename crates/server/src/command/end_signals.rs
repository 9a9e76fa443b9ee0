//! [`EndSignals`]: the end of a client command by a signal, without the loss of a sign-in.

use std::{future::Future, io, process::ExitCode, time::Duration};

use portcullis_client::TokenManager;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

/// SIGINT and SIGTERM.
pub(crate) struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

/// The limit of the wait for refreshes in progress.
const REFRESH_LIMIT: Duration = Duration::from_secs(10);
/// The time after which the user learns what is waited for.
const NOTICE_DELAY: Duration = Duration::from_millis(500);

impl EndSignals {
    /// Starts to receive the signals, which do not end the process from now on.
    ///
    /// # Errors
    /// Fails when the operating system does.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal, and returns the exit code of a program that it ends.
    pub(crate) async fn next(&mut self) -> ExitCode {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        };
        ExitCode::from(u8::try_from(128 + kind.as_raw_value()).unwrap_or(u8::MAX))
    }

    /// Waits for the refresh requests that were sent, at most [`REFRESH_LIMIT`], or until the next signal: a server that
    /// rotates refresh tokens has invalidated the stored one.
    pub(crate) async fn finish_refreshes(&mut self, token_manager: &TokenManager) {
        let finished = async {
            if timeout(NOTICE_DELAY, token_manager.finish_refreshes()).await.is_err() {
                tracing::info!("waiting for the new token that was requested; another signal ends this at once");
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
    }
}

/// Runs a command until it ends or a signal arrives.
///
/// # Errors
/// Those of the command, and when signals cannot be received.
pub(crate) async fn until_signal(
    token_manager: &TokenManager,
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let mut signals = EndSignals::listen()?;
    tokio::select! {
        result = command => result,
        code = signals.next() => {
            signals.finish_refreshes(token_manager).await;
            Ok(code)
        }
    }
}
