//! [`Administration`]: the listener for administrators of a deployment, and requests to it.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::{sleep, timeout},
};

use crate::{DeploymentBuilder, Finished, Portcullis, Request, Scratch, TIMEOUT};

/// The listener for administrators of a deployment: a unix socket, and a file with the token.
pub struct Administration {
    socket: Scratch,
    token: Scratch,
}

impl Default for Administration {
    fn default() -> Self {
        let token = Scratch::file("admin-token", Self::TOKEN);
        fs::set_permissions(token.path(), fs::Permissions::from_mode(0o600))
            .expect("the file is mine");
        Self {
            socket: Scratch::path_for("admin.sock"),
            token,
        }
    }
}

impl Administration {
    /// The token.
    pub const TOKEN: &'static str = "admin-token-of-a-scenario-0123456789abcdef";

    /// Sets the tables of a deployment: the listener, and then these.
    #[must_use]
    pub fn of(&self, builder: DeploymentBuilder, tables: &str) -> DeploymentBuilder {
        builder.tables(format!("{}\n{tables}", self.table()))
    }

    /// Returns the configuration table.
    pub fn table(&self) -> String {
        format!(
            "[admin]\nlisten = \"unix:{}\"\ntoken = {{ file = \"{}\" }}",
            self.socket.as_str(),
            self.token.as_str()
        )
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> &Path {
        self.socket.path()
    }

    /// Reads the metrics.
    ///
    /// # Panics
    /// Panics if the request is rejected.
    pub async fn metrics(&self, token: &str) -> String {
        let (status, head, body) = self
            .respond(Request::new("GET", "/metrics").bearer(token))
            .await;
        assert_eq!(status, 200, "{head}");
        assert!(
            head.contains("content-type: text/plain; version=0.0.4"),
            "{head}"
        );
        body
    }

    /// Waits until a metric without labels has this value.
    ///
    /// # Panics
    /// Panics if it does not have it in time.
    pub async fn wait_for_metric(&self, name: &str, value: usize) {
        let line = format!("\n{name} {value}\n");
        let has_value = async {
            while !self.metrics(Self::TOKEN).await.contains(&line) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(TIMEOUT, has_value)
            .await
            .unwrap_or_else(|_| panic!("{name} does not become {value}"));
    }

    /// Sends a request and returns the status and the JSON of the response.
    ///
    /// # Panics
    /// Panics if the response is not JSON, or has a CORS header.
    pub async fn send(&self, request: Request) -> (u16, Value) {
        let (status, head, body) = self.respond(request).await;
        assert!(head.contains("content-type: application/json"), "{head}");
        assert!(!head.contains("access-control"), "{head}");
        (
            status,
            serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")),
        )
    }

    /// Sends a request and returns the status, the head in lower case, and the body of the
    /// response.
    ///
    /// # Panics
    /// Panics if there is no response in time.
    pub async fn respond(&self, request: Request) -> (u16, String, String) {
        let exchange = async {
            let mut stream = UnixStream::connect(self.socket())
                .await
                .expect("the listener");
            stream
                .write_all(&request.header("Connection", "close").to_bytes())
                .await
                .expect("it reads");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.expect("it answers");
            answer
        };
        let answer = timeout(TIMEOUT, exchange)
            .await
            .expect("it answers in time");
        let answer = String::from_utf8(answer).expect("text");
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no response: {answer:?}"));
        let head = head.to_ascii_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a status");
        (status, head, body.to_owned())
    }

    /// Lists the sessions, as the API returns them.
    ///
    /// # Panics
    /// Panics if the request is rejected.
    pub async fn sessions(&self, query: &str) -> Value {
        let request = Request::new("GET", &format!("/v1/sessions{query}")).bearer(Self::TOKEN);
        let (status, list) = self.send(request).await;
        assert_eq!(status, 200, "{list}");
        list
    }

    /// Runs `portcullis admin` with the socket and the token.
    pub async fn run(&self, arguments: &[&str]) -> Finished {
        let server = [
            "--socket",
            self.socket.as_str(),
            "--token-file",
            self.token.as_str(),
        ];
        Portcullis::run(&[&["admin"], arguments, &server].concat()).await
    }
}
