use portcullis_metadata::SystemClock;
use portcullis_testkit::{TestIssuer, TokenBuilder};

use crate::{Connection, HttpResponse, INITIALIZE, Portcullis, Request, Scratch, Signal, Upstream};

/// The endpoint's URL as clients know it. The program listens on another port, which has no effect
/// on clients.
const BASE_URL: &str = "http://127.0.0.1:3000";
const ISSUER: &str = "https://issuer.example";

/// A protected endpoint: the program with an issuer's keys from a file, and a recording upstream.
pub struct Deployment {
    /// The program.
    pub portcullis: Portcullis,
    /// The issuer whose tokens it accepts.
    pub test_issuer: TestIssuer,
    /// The upstream.
    pub upstream: Upstream,
    configuration: String,
    _keys: Scratch,
}

/// Builds a [`Deployment`].
#[derive(Default)]
pub struct DeploymentBuilder {
    upstream: Option<Upstream>,
    upstream_setting: Option<String>,
    top: String,
    issuer: String,
    resource: Option<String>,
    tables: String,
    log_format: Option<&'static str>,
    files: Option<&'static str>,
}

impl DeploymentBuilder {
    /// Sets the upstream. Default: [`Upstream::start`].
    #[must_use]
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.upstream = Some(upstream);
        self
    }

    /// Sets the configured value of `upstream`. Default: the address of the recording upstream.
    #[must_use]
    pub fn upstream_setting(mut self, setting: impl Into<String>) -> Self {
        self.upstream_setting = Some(setting.into());
        self
    }

    /// Sets further lines at the top of the configuration.
    #[must_use]
    pub fn top(mut self, lines: impl Into<String>) -> Self {
        self.top = lines.into();
        self
    }

    /// Sets further lines of the `[[issuer]]`.
    #[must_use]
    pub fn issuer(mut self, lines: impl Into<String>) -> Self {
        self.issuer = lines.into();
        self
    }

    /// Sets the lines of the `[[resource]]`. Default: those that require the scope `mcp:tools`.
    #[must_use]
    pub fn resource(mut self, lines: impl Into<String>) -> Self {
        self.resource = Some(lines.into());
        self
    }

    /// Sets further tables at the end of the configuration.
    #[must_use]
    pub fn tables(mut self, tables: impl Into<String>) -> Self {
        self.tables = tables.into();
        self
    }

    /// Sets the log format. Default: `json`, which the methods that wait for JSON log lines need.
    #[must_use]
    pub fn log_format(mut self, format: &'static str) -> Self {
        self.log_format = Some(format);
        self
    }

    /// Sets the program's limit of open files as arguments of `ulimit`, such as `-Sn 256`. Default:
    /// that of this process.
    #[must_use]
    pub fn file_limit(mut self, limit: &'static str) -> Self {
        self.files = Some(limit);
        self
    }

    /// Starts the deployment.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn start(self) -> Deployment {
        let upstream = match self.upstream {
            Some(upstream) => upstream,
            None => Upstream::start().await,
        };
        let test_issuer = TestIssuer::new(ISSUER)
            .with_resource(Deployment::RESOURCE)
            .with_clock(SystemClock::new());
        let keys = Scratch::file("jwks.json", &test_issuer.jwks_json());
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
            endpoint = "{endpoint}"
            upstream = {setting}
            {resource}

            {tables}
            "#,
            top = self.top,
            keys = keys.as_str(),
            issuer = self.issuer,
            endpoint = Deployment::ENDPOINT,
            setting = self.upstream_setting.unwrap_or_else(|| upstream.setting()),
            resource = self.resource.as_deref().unwrap_or(Deployment::SCOPED),
            tables = self.tables,
        );
        let portcullis = Portcullis::serve_logging(
            &configuration,
            self.log_format.unwrap_or("json"),
            self.files,
        )
        .await;
        Deployment {
            portcullis,
            test_issuer,
            upstream,
            configuration,
            _keys: keys,
        }
    }
}

impl Deployment {
    /// The endpoint's path.
    pub const ENDPOINT: &'static str = "/mcp";
    /// The endpoint's URL as clients know it.
    pub const RESOURCE: &'static str = "http://127.0.0.1:3000/mcp";
    /// The URL of the metadata as clients know it.
    pub const METADATA_URL: &'static str =
        "http://127.0.0.1:3000/.well-known/oauth-protected-resource/mcp";
    /// The path of the metadata.
    pub const METADATA_PATH: &'static str = "/.well-known/oauth-protected-resource/mcp";
    /// The default settings of the resource.
    pub const SCOPED: &'static str =
        "required_scopes = [\"mcp:tools\"]\nscopes_supported = [\"mcp:tools\", \"mcp:admin\"]";

    /// Starts a deployment that requires the scope `mcp:tools`.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns a builder for other deployments.
    pub fn builder() -> DeploymentBuilder {
        DeploymentBuilder::default()
    }

    /// Ends the program with a signal and starts it again with the same configuration, issuer and
    /// upstream. Its state continues only in a configured `state_dir`. The log format is JSON, and
    /// files are not limited.
    ///
    /// # Panics
    /// Panics if it does not end or start.
    pub async fn restart(mut self, signal: Signal) -> Self {
        self.portcullis.signal(signal);
        self.portcullis.wait().await;
        self.portcullis = Portcullis::serve(&self.configuration).await;
        self
    }

    /// Returns the configuration, to start another program with the same issuer and upstream: a
    /// replica.
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// Returns a builder whose token is valid without changes.
    pub fn token(&self) -> TokenBuilder {
        self.test_issuer.token().scope("mcp:tools")
    }

    /// Returns a valid token.
    pub fn good_token(&self) -> String {
        self.token().sign()
    }

    /// Sends a request.
    pub async fn send(&self, request: Request) -> HttpResponse {
        request.send(self.portcullis.address()).await
    }

    /// Sends a request from a client address of its own, so that its rejection is not summed with
    /// others in the log.
    pub async fn send_as_new_client(&self, request: Request) -> HttpResponse {
        Connection::open_as_new_client(self.portcullis.address())
            .await
            .send(&request)
            .await
    }

    /// Sends an `initialize` request with a token, to test whether the token is accepted.
    pub async fn try_token(&self, token: &str) -> HttpResponse {
        self.send(Request::post(Self::ENDPOINT, INITIALIZE).bearer(token))
            .await
    }

    /// Opens a session and returns its identifier.
    ///
    /// # Panics
    /// Panics if the request is rejected.
    pub async fn open_session(&self, token: &str) -> String {
        let response = self.try_token(token).await;
        assert_eq!(response.status, 200, "{response:?}");
        response
            .header("mcp-session-id")
            .expect("a session identifier")
            .to_owned()
    }

    /// Calls the method `echo` in a session.
    pub async fn echo(&self, token: &str, session: &str) -> HttpResponse {
        self.send(Request::echo(Self::ENDPOINT, token, session))
            .await
    }

    /// Deletes a session.
    pub async fn delete_session(&self, token: &str, session: &str) -> HttpResponse {
        self.send(Request::delete(Self::ENDPOINT, token, session))
            .await
    }

    /// Asserts that a token is accepted and its request reaches the upstream.
    ///
    /// # Panics
    /// Panics otherwise.
    pub async fn assert_accepted(&self, case: &str, token: &str) {
        let before = self.upstream.count();
        let response = self.try_token(token).await;
        assert_eq!(response.status, 200, "{case}: {response:?}");
        assert_eq!(self.upstream.count(), before + 1, "{case}");
    }

    /// Asserts that each token is rejected with 401 and `error="invalid_token"`, that the log has
    /// the reason code and the response does not, and that no request reached the upstream. A case
    /// is a name, a token and a code.
    ///
    /// # Panics
    /// Panics otherwise.
    pub async fn assert_rejected<N: AsRef<str>>(
        &self,
        cases: impl IntoIterator<Item = (N, String, &str)>,
    ) {
        let before = self.upstream.count();
        let mut rejected = Vec::new();
        for (case, token, code) in cases {
            let case = case.as_ref().to_owned();
            let request = Request::post(Self::ENDPOINT, INITIALIZE).bearer(&token);
            let response = self.send_as_new_client(request).await;
            assert_eq!(response.status, 401, "{case}: {response:?}");
            assert_eq!(
                response.assert_unauthorized(),
                Some("invalid_token"),
                "{case}: {response:?}"
            );
            assert!(!response.text().contains(&token), "{case}: {response:?}");
            rejected.push((case, response, code));
        }
        assert_eq!(
            self.upstream.count(),
            before,
            "a request reached the upstream"
        );
        assert!(!rejected.is_empty(), "there is no case");

        for (case, response, code) in rejected {
            let line = self.portcullis.access_line(&response).await;
            assert_eq!(line["deny.code"], code, "{case}");
            assert!(
                !format!("{response:?}").contains(code),
                "{case}: the response contains the reason: {response:?}"
            );
        }
    }
}
