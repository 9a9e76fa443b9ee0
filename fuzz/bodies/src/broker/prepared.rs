//! [`Prepared`]: a broker with a client, a consent page, a transaction and a grant.

use std::{cell::RefCell, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use portcullis_broker::{BrokerKeys, IntrospectionClient};
use portcullis_metadata::{ResourceUri, Secret};
use portcullis_state_store::records::MemoryRecords;
use portcullis_testkit::ManualClock;
use tokio::runtime::{Builder, Runtime};

use super::{
    request,
    support::{Browser, Client, ISSUER, RESOURCE, Setup, hidden, param, settings},
};

/// The number of inputs after which a broker is replaced: its transaction has not expired then.
const MAX_INPUTS: usize = 250;
/// The time between two inputs, with which no rate is exceeded.
const PAUSE: Duration = Duration::from_secs(2);
/// The host of document clients.
pub(super) const CLIENT_HOST: &str = "client.example";

/// A broker, and what the browser and the client of a user hold.
pub(super) struct Prepared {
    runtime: Runtime,
    pub(super) setup: Setup,
    pub(super) client: Client,
    /// The sealed request of a consent page.
    pub(super) sealed: String,
    /// The header with all cookies.
    pub(super) cookies: String,
    /// The `state` of a transaction.
    pub(super) state: String,
    pub(super) refresh_token: String,
    /// The number of inputs so far.
    pub(super) inputs: usize,
}

thread_local! {
    /// It is taken out while a body runs, so that a panic does not leave a changed one.
    static PREPARED: RefCell<Option<Prepared>> = const { RefCell::new(None) };
}

/// Calls a function with a broker that further inputs of this thread use as well.
pub(super) fn with(body: impl FnOnce(&mut Prepared)) {
    let held = PREPARED.take();
    let usable = held.filter(|prepared| prepared.inputs < MAX_INPUTS);
    let Some(mut prepared) = usable.or_else(Prepared::new) else {
        return;
    };
    prepared.inputs += 1;
    prepared.setup.pass(PAUSE);
    body(&mut prepared);
    PREPARED.set(Some(prepared));
}

impl Prepared {
    /// `None` if the operating system gives no runtime or no random bytes.
    fn new() -> Option<Self> {
        let runtime = Builder::new_current_thread().enable_time().build().ok()?;
        let keys = BrokerKeys::parse(&BrokerKeys::generate().ok()?).ok()?;
        let mut settings = settings();
        settings.clients.redirect_hosts = vec![CLIENT_HOST.into()];
        settings.pages.remember = true;
        settings.introspection_clients = vec![IntrospectionClient {
            id: "server".into(),
            secret: Secret::new("secret"),
            resource: ResourceUri::parse(RESOURCE).ok()?,
        }];
        let clock = ManualClock::new();
        let records = Arc::new(MemoryRecords::new(Arc::new(clock.clone())));
        let entered = runtime.enter();
        let setup = Setup::assemble(settings, clock, records, Arc::new(keys));
        drop(entered);
        let (client, refresh_token, sealed, cookies, state) = runtime.block_on(async {
            let client = setup.client().await;
            let tokens = setup.sign_in(&client).await;
            let mut browser = Browser::new(&setup);
            let page = browser.authorize(&client.request()).await;
            let url = browser.approve(&page).await;
            let cookies = browser.cookies.iter();
            let cookies: Vec<_> = cookies
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            (
                client,
                tokens["refresh_token"].as_str().map(str::to_owned),
                hidden(&page, "request"),
                cookies.join("; "),
                param(&url, "state"),
            )
        });
        Some(Self {
            runtime,
            setup,
            client,
            sealed,
            cookies,
            state: state?,
            refresh_token: refresh_token?,
            inputs: 0,
        })
    }

    /// Replaces the words that stand for what differs in each run.
    pub(super) fn text(&self, data: &[u8]) -> String {
        String::from_utf8_lossy(data)
            .replace("CLIENT", &self.client.id)
            .replace("STATE", &self.state)
            .replace("SEALED", &self.sealed)
            .replace("COOKIES", &self.cookies)
            .replace("REFRESH", &self.refresh_token)
    }

    pub(super) fn send(&self, request: Request<Bytes>) -> Response<Bytes> {
        self.runtime.block_on(self.setup.send(request))
    }

    /// Sends the answer to the consent page, with these cookies. `None` if they cannot be sent.
    pub(super) fn answer(&self, form: &str, cookies: &str) -> Option<Response<Bytes>> {
        let headers = [
            ("content-type", super::FORM),
            ("origin", ISSUER),
            ("cookie", cookies),
        ];
        let request = request(Method::POST, "/oauth/consent", &headers, form.to_owned())?;
        Some(self.send(request))
    }

    /// Refreshes with a token.
    pub(super) fn refresh(&self, token: &str) -> Response<Bytes> {
        self.runtime
            .block_on(self.setup.refresh(&self.client, token))
    }
}
