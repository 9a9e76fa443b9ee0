use std::path::PathBuf;

use portcullis_testkit::{Forge, TokenBuilder};
use serde_json::{Value, json};

use crate::{Answer, Portcullis, Request, Upstream};

/// An initialize request of revision 2025-11-25.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"scenario","version":"1"}}}"#;

/// The endpoint's address as clients know it. The port it listens on is another one: nothing may depend on it.
const BASE_URL: &str = "http://127.0.0.1:3000";
const ISSUER: &str = "https://issuer.example";

/// A JSON-RPC request.
pub fn call(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// The whole of a protected endpoint: the program with an issuer's keys from a file, and a recording upstream.
pub struct Site {
    /// The program.
    pub portcullis: Portcullis,
    /// The issuer whose tokens it accepts.
    pub forge: Forge,
    /// What is behind it.
    pub upstream: Upstream,
}

impl Site {
    /// The endpoint's path.
    pub const ENDPOINT: &'static str = "/mcp";
    /// The endpoint's address as clients know it.
    pub const RESOURCE: &'static str = "http://127.0.0.1:3000/mcp";

    /// Starts one that asks for the scope `mcp:tools`.
    pub async fn start() -> Self {
        Self::with("", "required_scopes = [\"mcp:tools\"]\nscopes_supported = [\"mcp:tools\", \"mcp:admin\"]").await
    }

    /// Starts one with more lines at the top of the configuration, and in its one `[[resource]]`.
    pub async fn with(top: &str, resource: &str) -> Self {
        Self::on(Upstream::start().await, top, "", resource).await
    }

    /// Starts one with more lines in its one `[[issuer]]`.
    pub async fn with_issuer(issuer: &str) -> Self {
        Self::on(Upstream::start().await, "", issuer, "").await
    }

    /// Starts one in front of a given upstream.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn on(upstream: Upstream, top: &str, issuer: &str, resource: &str) -> Self {
        let forge = Forge::new(ISSUER).with_resource(Self::RESOURCE);
        let keys = key_file(&forge);
        let configuration = format!(
            r#"
            listen = "127.0.0.1:0"
            base_url = "{BASE_URL}"
            workers = 2
            {top}

            [[issuer]]
            issuer = "{ISSUER}"
            jwks_file = "{keys}"
            {issuer}

            [[resource]]
            endpoint = "/mcp"
            upstream = {{ http = "{upstream}" }}
            {resource}
            "#,
            keys = keys.display(),
            upstream = upstream.url(),
        );
        Self { portcullis: Portcullis::serve(&configuration).await, forge, upstream }
    }

    /// A token in the making that would be accepted as it is.
    pub fn token(&self) -> TokenBuilder {
        self.forge.token().scope("mcp:tools")
    }

    /// A token that is accepted.
    pub fn good_token(&self) -> String {
        self.token().sign()
    }

    /// Sends a request.
    pub async fn send(&self, request: Request) -> Answer {
        request.send(self.portcullis.address()).await
    }

    /// Sends an initialize request with a token, as a probe of what the guard thinks of the token.
    pub async fn try_token(&self, token: &str) -> Answer {
        self.send(Request::post(Self::ENDPOINT, INITIALIZE).bearer(token)).await
    }

    /// Opens a session and gives its identifier.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn open_session(&self, token: &str) -> String {
        let answer = self.try_token(token).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("mcp-session-id").expect("a session identifier").to_owned()
    }

    /// Asserts that a token is refused with 401, `error="invalid_token"`, and this reason in the log alone, and that
    /// nothing reached the upstream.
    ///
    /// # Panics
    /// When it is not so.
    pub async fn assert_refused(&self, token: &str, code: &str) {
        let before = self.upstream.recorded().len();
        let answer = self.try_token(token).await;
        assert_eq!(answer.assert_unauthorized(), Some("invalid_token"), "{code}: {answer:?}");
        assert!(!answer.text().contains(code), "the reason is told to the client: {answer:?}");
        let line = self.portcullis.access_line(answer.header("x-request-id").expect("an id")).await;
        assert_eq!(line["deny.code"], code);
        assert_eq!(self.upstream.recorded().len(), before, "{code}: a request reached the upstream");
    }
}

fn key_file(forge: &Forge) -> PathBuf {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNTER: AtomicUsize = AtomicUsize::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("portcullis-{}-{number}.jwks.json", std::process::id()));
    std::fs::write(&path, forge.jwks_json()).expect("a temporary file can be written");
    path
}
