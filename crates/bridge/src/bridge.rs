use std::{fs::File, future::Future, io, sync::Arc, time::Duration};

use http::Method;
use portcullis_discovery::{BoxFuture, Fetch, FetchRequest, UrlPolicy};
use portcullis_mcp::ErrorCode;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use portcullis_client::TokenManager;

mod ends;
mod gate;
mod hub;
mod kept;
mod lane;
mod legacy;
mod lines;
mod listen;
mod message;
mod modern;
mod output;
mod pending;
mod renewal;
mod session;
mod settings;
mod sse;
mod stream;
#[cfg(test)]
mod tests;
mod wire;

pub use settings::{BridgeSettings, BridgeTransport};

use ends::{Sink, Source};
use hub::{Hub, Request};
use kept::Change;
use lane::{Parcel, ParcelWay};
use lines::{Line, Lines};
use message::{Id, Kind, Message, MessageError, error_answer};
use output::Output;
use pending::{Asker, Purpose};
use wire::{Refused, Wire};

/// Carries the messages of a client that speaks over standard input and output (newline-delimited JSON-RPC) to one
/// endpoint, and back: over Streamable HTTP, of the revisions with sessions and of 2026-07-28, or over HTTP with SSE
/// (2024-11-05) where the server speaks nothing newer.
///
/// The client decides which revision is spoken; messages pass as they are. What the transport wants beyond them is added:
/// the session's identifier, the headers that mirror a message, and the token, which the [`TokenManager`] renews while
/// requests wait for it. A stream that breaks off is resumed where it can be; a session that the server has forgotten is
/// opened once more, and the refused request sent again. What cannot be done is said to the client as a JSON-RPC error.
///
/// Messages of one stream keep their order, and so do the client's notifications and answers. Nothing is promised about
/// the order of different requests, as they go out side by side; none goes out before a handshake that is under way.
pub struct Bridge {
    token_manager: Arc<TokenManager>,
    fetch: Arc<dyn Fetch>,
    settings: BridgeSettings,
}

/// How long the end of a session may take, and the last writing.
const END_WITHIN: Duration = Duration::from_secs(1);

impl Bridge {
    /// A bridge to the endpoint that the token_manager keeps the token of. Nothing is sent yet.
    pub fn new(token_manager: Arc<TokenManager>, fetch: Arc<dyn Fetch>, settings: BridgeSettings) -> Self {
        Self { token_manager, fetch, settings }
    }

    /// Carries messages until the input ends, nobody reads the output any more, or `stop` is ready; then ends the
    /// session. When the input ends, requests that are under way still get [`BridgeSettings::grace`].
    ///
    /// Both ends may be pipes, sockets, files or terminals: standard input and output, or what takes their places. Pipes
    /// and sockets are made non-blocking. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When the ends cannot be waited for, and when the input cannot be read. Trouble with the server is told to the
    /// client, and is no error here.
    pub async fn run(self, input: File, output: File, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
        let (input, output) = ends::open(input, output)?;
        self.carry(input, output, Box::pin(stop)).await
    }

    /// Boxed, so that a program gets this code as one piece, and not among its own: a bridge is resident for days.
    fn carry<'a>(self, input: Source, output: Sink, stop: BoxFuture<'a, ()>) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(self.carry_until(input, output, stop))
    }

    async fn carry_until(self, input: Source, output: Sink, mut stop: BoxFuture<'_, ()>) -> io::Result<()> {
        let settings = Arc::new(self.settings);
        let (lines, writing) = Output::new(settings.max_message.saturating_mul(2));
        let wire = Wire::new(self.token_manager, self.fetch, Arc::clone(&settings));
        let hub = Arc::new(Hub::new(Arc::clone(&settings), wire, lines));
        let mut writer = tokio::spawn(writing.write(output));

        let mut desk = Desk::new(Arc::clone(&hub));
        let mut input = Lines::new(input, settings.max_message);
        let ended = loop {
            tokio::select! {
                line = input.next() => match line {
                    Ok(Some(line)) => tokio::select! {
                        () = desk.take(line) => {}
                        () = &mut stop => break Ended::Stopped,
                        _ = &mut writer => break Ended::Unheard,
                    },
                    Ok(None) => break Ended::Input,
                    Err(error) => break Ended::Failed(error),
                },
                () = &mut stop => break Ended::Stopped,
                _ = &mut writer => break Ended::Unheard,
            }
        };
        tracing::debug!(ended = ?ended, "the bridge ends");
        if matches!(ended, Ended::Input) {
            tokio::select! {
                () = desk.finish() => {}
                () = sleep(settings.grace) => {}
                () = &mut stop => {}
            }
        }
        drop(desk);
        end(&hub, matches!(ended, Ended::Unheard), &mut writer).await;
        match ended {
            Ended::Failed(error) => Err(error),
            Ended::Input | Ended::Stopped | Ended::Unheard => Ok(()),
        }
    }
}

/// Why a bridge comes to its end.
#[derive(Debug)]
enum Ended {
    /// The client has nothing more to say.
    Input,
    /// The input cannot be read.
    Failed(io::Error),
    /// The client does not listen.
    Unheard,
    /// The caller wants it.
    Stopped,
}

/// Tells whoever still waits, and ends the session.
async fn end(hub: &Arc<Hub>, unheard: bool, writer: &mut JoinHandle<io::Result<()>>) {
    let left = hub.pending.take_all();
    let last_words = async {
        for (id, _) in left {
            let text = "the bridge has come to its end";
            hub.give(error_answer(Some(&id), ErrorCode::InternalError, text, "bridge.ended")).await;
        }
        hub.output.flushed().await;
    };
    let written = async {
        tokio::select! {
            () = last_words => {}
            _ = writer => {}
        }
    };
    let session = end_session(hub);
    if unheard {
        let _ = timeout(END_WITHIN, session).await;
    } else {
        let _ = tokio::join!(timeout(END_WITHIN, session), timeout(END_WITHIN, written));
    }
}

/// Tells the server that the session is not needed any more. It may not care.
async fn end_session(hub: &Arc<Hub>) {
    let Some(session) = hub.sessions.end().filter(|session| session.identifier.is_some()) else { return };
    let mut request = FetchRequest::new(Method::DELETE, hub.wire.url().clone(), UrlPolicy::Operator);
    request.headers = hub.sessions.headers(Some(&session));
    match hub.wire.send(request, Refused::Stands).await {
        Ok(answer) => tracing::debug!(status = answer.status.as_u16(), "the session is ended"),
        Err(error) => tracing::debug!(reason = error.code(), "the session was not ended"),
    }
}

/// Where the client's messages arrive and are sent on their ways.
struct Desk {
    hub: Arc<Hub>,
    /// Requests, each on its own.
    requests: JoinSet<()>,
    parcels: mpsc::Sender<Parcel>,
    lane: JoinHandle<()>,
    /// The revision of the client's latest modern request.
    modern: Option<String>,
}

impl Desk {
    fn new(hub: Arc<Hub>) -> Self {
        let (parcels, waiting) = mpsc::channel(lane::LENGTH);
        let lane = tokio::spawn(lane::deliver(Arc::clone(&hub), waiting));
        Self { hub, requests: JoinSet::new(), parcels, lane, modern: None }
    }

    /// Takes what came in. It waits only where the server or the client does not take what there is for it.
    async fn take(&mut self, line: Line) {
        while self.requests.try_join_next().is_some() {}
        let message = match line {
            Line::Text(text) => Message::parse(text),
            Line::TooLong => Err(MessageError::TooLong),
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!("the client sent what is no message: {error}");
                return self.hub.give(error_answer(None, error.rpc_code(), &error.to_string(), "")).await;
            }
        };
        match message.kind.clone() {
            Kind::Request { id, method } => self.request(message, id, method).await,
            Kind::Notification { method } if method == "notifications/cancelled" => self.cancel(message).await,
            Kind::Notification { method } => self.notification(message, method).await,
            Kind::Response { .. } if self.hub.sessions.current().is_some() => self.send(message, None, None).await,
            Kind::Response { .. } => tracing::warn!("the client answers what no server has asked"),
        }
    }

    async fn request(&mut self, message: Message, id: Id, method: String) {
        let version = message.params().protocol_version();
        let purpose = match (&version, method.as_str()) {
            (Some(_), "tools/list") => Purpose::ModernToolsList,
            (Some(_), _) => Purpose::Modern,
            (None, "initialize") => Purpose::Initialize { identifier: None, link: None },
            (None, _) => Change::of(&method, message.params()).map_or(Purpose::Plain, Purpose::Keeps),
        };
        let opens = matches!(purpose, Purpose::Initialize { .. });
        let begun = self.hub.pending.begin(id.clone(), Asker::Client, purpose, self.hub.settings.max_requests);
        let Some(over) = begun else {
            let text = "too many requests are under way, or this one is already";
            let answer = error_answer(Some(&id), ErrorCode::InternalError, text, "bridge.busy");
            return self.hub.give(answer).await;
        };
        let closed = opens.then(|| {
            self.hub.kept.clear();
            self.hub.sessions.begin(message.params().raw().map(serde_json::value::RawValue::get));
            self.hub.handshake.close()
        });
        if version.is_some() {
            self.modern.clone_from(&version);
        }
        let hub = Arc::clone(&self.hub);
        let request = Request { id: id.clone(), method, message, over, refused: Refused::Renew };
        let stop = self.requests.spawn(async move {
            let outcome = match (&version, opens) {
                (Some(version), _) => modern::ask(&hub, &request, version).await,
                (None, true) => legacy::initialize(&hub, &request).await,
                (None, false) => {
                    hub.handshake.pass().await;
                    hub.initialized.pass().await;
                    legacy::ask(&hub, &request).await
                }
            };
            drop(closed);
            if let Err(error) = outcome {
                hub.refuse(&request.id, &error).await;
            }
        });
        self.hub.pending.stoppable(&id, stop);
    }

    /// The client does not want an answer any more, and gets none. A modern server learns it by the end of the exchange,
    /// a legacy one by the notification. A handshake cannot be cancelled, and is given up here alone.
    async fn cancel(&mut self, message: Message) {
        let Some(entry) = message.params().request_id().and_then(|id| self.hub.pending.take(&id)) else { return };
        match entry.purpose {
            Purpose::Plain | Purpose::Keeps(_) => self.send(message, entry.stop, None).await,
            Purpose::Initialize { .. } | Purpose::Modern | Purpose::ModernToolsList => {
                if let Some(stop) = entry.stop {
                    stop.abort();
                }
            }
        }
    }

    async fn notification(&mut self, message: Message, method: String) {
        let version = message.params().protocol_version();
        let version = version.or_else(|| self.modern.clone().filter(|_| self.hub.sessions.handshake().is_none()));
        if let Some(version) = version {
            return self.deliver(Parcel::modern(message, method, version)).await;
        }
        let opens = (method == "notifications/initialized").then(|| self.hub.initialized.close());
        self.send(message, None, opens).await;
    }

    async fn send(&mut self, message: Message, stops: Option<AbortHandle>, opens: Option<gate::Closed>) {
        self.deliver(Parcel { message, way: ParcelWay::Legacy, stops, opens }).await;
    }

    async fn deliver(&mut self, parcel: Parcel) {
        // The lane ends with the desk.
        let _ = self.parcels.send(parcel).await;
    }

    /// Waits until all is delivered and answered.
    async fn finish(&mut self) {
        while self.requests.join_next().await.is_some() {}
        let (parcels, _) = mpsc::channel(1);
        self.parcels = parcels;
        let _ = (&mut self.lane).await;
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.lane.abort();
    }
}
