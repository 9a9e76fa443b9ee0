//! [`Bridge`]: forwards messages between standard input and output and an MCP endpoint.

use std::{
    fs::File,
    future::Future,
    io::{self, ErrorKind},
    sync::Arc,
    time::Duration,
};

use http::Method;
use portcullis_client::TokenManager;
use portcullis_discovery::{BoxFuture, Fetch, FetchRequest, UrlPolicy};
use portcullis_mcp::ErrorCode;
use tokio::{
    task::{JoinError, JoinHandle},
    time::{sleep, timeout},
};

use crate::{
    context::Context,
    dispatcher::Dispatcher,
    endpoint::{Endpoint, TokenRenewal},
    message::new_error,
    server_stream,
    settings::BridgeSettings,
    stdio::{
        line_reader::LineReader,
        line_writer::LineSender,
        streams::{self, Input, Output},
    },
};

/// Forwards the messages of a stdio client (newline-delimited JSON-RPC) to one MCP endpoint, and
/// the server's messages back.
///
/// The endpoint may use Streamable HTTP, with sessions or without (2026-07-28), or HTTP with SSE
/// (2024-11-05).
///
/// The client selects the protocol revision; messages are forwarded unchanged. The bridge adds what
/// the transport requires: the session identifier, the headers that mirror message fields, and the
/// access token, which the [`TokenManager`] renews while requests wait. It resumes interrupted
/// streams. When the server has lost the session, the bridge opens another one and sends the
/// rejected request again. Failures are reported to the client as JSON-RPC errors.
///
/// The messages of one stream keep their order, and so do the client's notifications and responses.
/// Requests are sent concurrently, in no particular order, after a handshake in progress has
/// finished.
pub struct Bridge {
    token_manager: Arc<TokenManager>,
    fetch: Arc<dyn Fetch>,
    settings: BridgeSettings,
}

/// The time limit for deleting the session, and for writing the last messages, at the end of a
/// bridge.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

impl Bridge {
    /// Creates a bridge to the token manager's start URL. It sends nothing yet.
    pub fn new(
        token_manager: Arc<TokenManager>,
        fetch: Arc<dyn Fetch>,
        settings: BridgeSettings,
    ) -> Self {
        Self {
            token_manager,
            fetch,
            settings,
        }
    }

    /// Forwards messages until the input ends, the output is closed, or `stop` is ready. Then it
    /// deletes the session. When the input ends, requests in progress get [`BridgeSettings::grace`]
    /// to finish.
    ///
    /// Input and output may be pipes, sockets, files or terminals. Pipes and sockets are in
    /// non-blocking mode until the bridge ends, also for other processes that have the same one; if
    /// it is also standard error, it stays blocking.
    ///
    /// Files and terminals are read on a thread of the runtime. A pending read of a terminal cannot
    /// be cancelled: after `stop`, dropping the runtime blocks until the next line. Use
    /// [`Runtime::shutdown_background`](tokio::runtime::Runtime::shutdown_background), or end the
    /// process.
    ///
    /// # Errors
    /// When input or output cannot be registered with the runtime, when reading the input fails,
    /// and when writing the output fails although the client has not closed it; the message says
    /// which. Errors of the server are reported to the client as JSON-RPC errors.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time.
    pub async fn run(
        self,
        input: File,
        output: File,
        stop: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let (input, output) = streams::open(input, output)?;
        self.forward(input, output, Box::pin(stop)).await
    }

    /// Boxes the future to keep the caller's future small.
    pub(crate) fn forward<'a>(
        self,
        input: Input,
        output: Output,
        stop: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(self.forward_until(input, output, stop))
    }

    /// See [`run`](Self::run).
    async fn forward_until(
        self,
        input: Input,
        output: Output,
        mut stop: BoxFuture<'_, ()>,
    ) -> io::Result<()> {
        let settings = Arc::new(self.settings);
        let (lines, writing) = LineSender::new(settings.max_message);
        let endpoint = Endpoint::new(self.token_manager, self.fetch, Arc::clone(&settings));
        let context = Arc::new(Context::new(
            Arc::clone(&settings),
            endpoint,
            lines,
            server_stream::start,
        ));
        let mut writer = tokio::spawn(writing.write(output));

        let mut dispatcher = Dispatcher::new(Arc::clone(&context));
        let mut input = LineReader::new(input, settings.max_message);
        let ended = loop {
            tokio::select! {
                line = input.next() => match line {
                    Ok(Some(line)) => tokio::select! {
                        () = dispatcher.dispatch(line) => {}
                        () = &mut stop => break EndReason::Stopped,
                        written = &mut writer => break EndReason::of_writer(written),
                    },
                    Ok(None) => break EndReason::InputEnded,
                    Err(error) => break EndReason::InputFailed(error),
                },
                () = &mut stop => break EndReason::Stopped,
                written = &mut writer => break EndReason::of_writer(written),
            }
        };
        tracing::debug!(reason = ?ended, "the bridge ends");
        if matches!(ended, EndReason::InputEnded) {
            tokio::select! {
                () = dispatcher.finish() => {}
                () = sleep(settings.grace) => {}
                () = &mut stop => {}
            }
        }
        drop(dispatcher);
        let output_ended = matches!(ended, EndReason::OutputClosed | EndReason::OutputFailed(_));
        end(&context, output_ended, &mut writer).await;
        if !writer.is_finished() {
            // The client does not read, or a task still holds the queue. The output is closed
            // before this returns, so that the mode of both streams is restored.
            writer.abort();
            let _ = writer.await;
        }
        match ended {
            EndReason::InputFailed(error) => Err(io::Error::new(
                error.kind(),
                format!("the input cannot be read: {error}"),
            )),
            EndReason::OutputFailed(error) => Err(io::Error::new(
                error.kind(),
                format!("the output cannot be written: {error}"),
            )),
            EndReason::InputEnded | EndReason::Stopped | EndReason::OutputClosed => Ok(()),
        }
    }
}

/// Why a bridge ends.
#[derive(Debug)]
enum EndReason {
    /// The client closed the input.
    InputEnded,
    /// Reading the input failed.
    InputFailed(io::Error),
    /// The client closed the output.
    OutputClosed,
    /// Writing the output failed for another reason.
    OutputFailed(io::Error),
    /// The caller stopped it.
    Stopped,
}

impl EndReason {
    /// Returns why the task that writes the output has ended.
    fn of_writer(written: Result<io::Result<()>, JoinError>) -> Self {
        match written {
            Ok(Err(error))
                if !matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) =>
            {
                Self::OutputFailed(error)
            }
            _ => Self::OutputClosed,
        }
    }
}

/// Answers the pending requests with an error, unless the output has ended, and ends the session.
/// Each takes at most [`SHUTDOWN_TIMEOUT`].
async fn end(context: &Arc<Context>, output_ended: bool, writer: &mut JoinHandle<io::Result<()>>) {
    let pending = context.pending.remove_all();
    let answers = async {
        for (id, _) in pending {
            let text = "the bridge has ended";
            let answer = new_error(
                Some(&id),
                ErrorCode::InternalError,
                text,
                Some("bridge.ended"),
            );
            context.send_to_client(answer).await;
        }
        context.output.flushed().await;
    };
    let written = async {
        tokio::select! {
            () = answers => {}
            _ = writer => {}
        }
    };
    let session = timeout(SHUTDOWN_TIMEOUT, end_session(context));
    if output_ended {
        let _ = session.await;
    } else {
        let _ = tokio::join!(session, timeout(SHUTDOWN_TIMEOUT, written));
    }
}

/// Deletes the session at the server. A failure is only logged.
async fn end_session(context: &Arc<Context>) {
    let Some(session) = context
        .sessions
        .end()
        .filter(|session| session.identifier.is_some())
    else {
        return;
    };
    let mut request = FetchRequest::new(
        Method::DELETE,
        context.endpoint.url().clone(),
        UrlPolicy::StartOrigin,
    );
    request.headers = context.sessions.headers(Some(&session));
    match context.endpoint.send(request, TokenRenewal::Disabled).await {
        Ok(answer) => tracing::debug!(status = answer.status.as_u16(), "the session was deleted"),
        Err(error) => tracing::debug!(reason = error.code(), "the session was not deleted"),
    }
}
