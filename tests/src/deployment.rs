//! [`Deployment`]: the program, its issuer and its upstream.

use portcullis_metadata::SystemClock;
use portcullis_testkit::{TestIssuer, TokenBuilder};

use crate::{Answer, INITIALIZE, Portcullis, Request, Scratch, Signal, Upstream};

/// The endpoint's address as clients know it. The port it listens on is another one: nothing may depend on it.
const BASE_URL: &str = "http://127.0.0.1:3000";
const ISSUER: &str = "https://issuer.example";

/// The whole of a protected endpoint: the program with an issuer's keys from a file, and a recording upstream.
pub struct Deployment {
    /// The program.
    pub portcullis: Portcullis,
    /// The issuer whose tokens it accepts.
    pub test_issuer: TestIssuer,
    /// What is behind it.
    pub upstream: Upstream,
    configuration: String,
    _keys: Scratch,
}

/// A [`Deployment`] in the making.
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
    /// What stands behind the endpoint; a plain [`Upstream`] by default.
    #[must_use]
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.upstream = Some(upstream);
        self
    }

    /// The configured value of `upstream`, in place of the address of the recording one.
    #[must_use]
    pub fn upstream_setting(mut self, setting: impl Into<String>) -> Self {
        self.upstream_setting = Some(setting.into());
        self
    }

    /// More lines at the top of the configuration.
    #[must_use]
    pub fn top(mut self, lines: impl Into<String>) -> Self {
        self.top = lines.into();
        self
    }

    /// More lines in the `[[issuer]]`.
    #[must_use]
    pub fn issuer(mut self, lines: impl Into<String>) -> Self {
        self.issuer = lines.into();
        self
    }

    /// Lines in the `[[resource]]`, in place of those that ask for the scope `mcp:tools`.
    #[must_use]
    pub fn resource(mut self, lines: impl Into<String>) -> Self {
        self.resource = Some(lines.into());
        self
    }

    /// More tables at the end of the configuration.
    #[must_use]
    pub fn tables(mut self, tables: impl Into<String>) -> Self {
        self.tables = tables.into();
        self
    }

    /// The form of the program's log; `json` by default, which is what everything that waits for a log line reads.
    #[must_use]
    pub fn log_format(mut self, format: &'static str) -> Self {
        self.log_format = Some(format);
        self
    }

    /// The program's limit of open files, in arguments of `ulimit`, such as `-Sn 256`; this process's own by default.
    #[must_use]
    pub fn files(mut self, limit: &'static str) -> Self {
        self.files = Some(limit);
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(self) -> Deployment {
        let upstream = match self.upstream {
            Some(upstream) => upstream,
            None => Upstream::start().await,
        };
        let test_issuer = TestIssuer::new(ISSUER).with_resource(Deployment::RESOURCE).with_clock(SystemClock::new());
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
        let portcullis = Portcullis::serve_logging(&configuration, self.log_format.unwrap_or("json"), self.files).await;
        Deployment { portcullis, test_issuer, upstream, configuration, _keys: keys }
    }
}

impl Deployment {
    /// The endpoint's path.
    pub const ENDPOINT: &'static str = "/mcp";
    /// The endpoint's address as clients know it.
    pub const RESOURCE: &'static str = "http://127.0.0.1:3000/mcp";
    /// Where its metadata is, as clients know it.
    pub const METADATA_URL: &'static str = "http://127.0.0.1:3000/.well-known/oauth-protected-resource/mcp";
    /// The path of its metadata.
    pub const METADATA_PATH: &'static str = "/.well-known/oauth-protected-resource/mcp";
    /// What a resource is configured with unless a scenario says otherwise.
    pub const SCOPED: &'static str =
        "required_scopes = [\"mcp:tools\"]\nscopes_supported = [\"mcp:tools\", \"mcp:admin\"]";

    /// Starts one that asks for the scope `mcp:tools`.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Begins one that is special.
    pub fn builder() -> DeploymentBuilder {
        DeploymentBuilder::default()
    }

    /// Ends the program with a signal and starts it again with the same configuration, issuer and upstream.
    ///
    /// # Panics
    /// Panics if it does not end or start.
    pub async fn restart(mut self, signal: Signal) -> Self {
        self.portcullis.signal(signal);
        self.portcullis.ended().await;
        self.portcullis = Portcullis::serve(&self.configuration).await;
        self
    }

    /// A token in the making that would be accepted as it is.
    pub fn token(&self) -> TokenBuilder {
        self.test_issuer.token().scope("mcp:tools")
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

    /// Asserts that a token is accepted and its request reaches the upstream.
    ///
    /// # Panics
    /// When it is not so.
    pub async fn assert_accepted(&self, case: &str, token: &str) {
        let before = self.upstream.count();
        let answer = self.try_token(token).await;
        assert_eq!(answer.status, 200, "{case}: {answer:?}");
        assert_eq!(self.upstream.count(), before + 1, "{case}");
    }

    /// Asserts of each token that it is refused with 401 and `error="invalid_token"`, for this reason, which stands in
    /// the log and not in the answer, and that nothing reached the upstream. Each case is a name, the token, the code.
    ///
    /// # Panics
    /// When it is not so.
    pub async fn assert_refused<N: AsRef<str>>(&self, cases: impl IntoIterator<Item = (N, String, &str)>) {
        let before = self.upstream.count();
        let mut refused = Vec::new();
        for (case, token, code) in cases {
            let case = case.as_ref().to_owned();
            let answer = self.try_token(&token).await;
            assert_eq!(answer.status, 401, "{case}: {answer:?}");
            assert_eq!(answer.assert_unauthorized(), Some("invalid_token"), "{case}: {answer:?}");
            assert!(!answer.text().contains(&token), "{case}: {answer:?}");
            refused.push((case, answer, code));
        }
        assert_eq!(self.upstream.count(), before, "a request reached the upstream");
        assert!(!refused.is_empty(), "no case at all");
        for (case, answer, code) in refused {
            let line = self.portcullis.access_line(&answer).await;
            assert_eq!(line["deny.code"], code, "{case}");
            assert!(!format!("{answer:?}").contains(code), "{case}: the reason is told to the client: {answer:?}");
        }
    }
}
