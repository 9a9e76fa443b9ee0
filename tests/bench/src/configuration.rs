//! The configurations of the server under test.

use std::{net::SocketAddr, path::Path};

use portcullis_jose::Algorithm;

/// The path of the endpoint.
pub(super) const PATH: &str = "/mcp";
/// The issuer of signed tokens.
pub(super) const ISSUER: &str = "https://auth.example.com/realms/prod";
/// The URL as clients know it. The server listens on another port.
pub(super) const BASE_URL: &str = "http://127.0.0.1:3000";

/// The file in the folder with the token of administrators.
pub(super) const ADMIN_TOKEN_FILE: &str = "admin-token";

/// The configurations that are measured.
#[derive(Clone, Copy)]
pub(super) enum Configuration {
    /// The defaults: signed tokens, sessions, one rule and the access log.
    Standard,
    /// With all checks and records: also an audit trail in a file, all three types of rate limits,
    /// and claim rules.
    AllOn,
    /// The defaults, and an audit trail in a file.
    Audited,
    /// The defaults, with tokens that are signed with ES256.
    Es256,
    /// The defaults and metrics, which nothing reads meanwhile.
    Metrics,
    /// The defaults, metrics, and spans for this receiver, of 1 % of the requests.
    Traces { receiver: SocketAddr },
    /// With opaque tokens, which are introspected at this issuer.
    Introspecting { issuer: SocketAddr },
}

/// Measured rejections are more than one client may cause.
const UNLIMITED: &str = "[limits]\nrejected_per_address = { requests = 1000000, per = \"1s\" }";

impl Configuration {
    /// Returns the configuration file. The key set is in the folder.
    pub(super) fn text(
        self,
        address: SocketAddr,
        upstream: SocketAddr,
        folder: &Path,
        audit: &Path,
    ) -> String {
        let issuer = self.issuer(folder);
        let additional = self.additional(folder, audit);
        format!(
            r#"
            listen = "{address}"
            base_url = "{BASE_URL}"
            workers = 2

            [[issuer]]
            {issuer}

            [[resource]]
            endpoint = "{PATH}"
            scopes_supported = ["mcp:tools", "mcp:admin"]
            required_scopes = ["mcp:tools"]
            upstream = {{ http = "http://{upstream}{PATH}" }}

            [[resource.rule]]
            method = "tools/call"
            name = "admin_*"
            scopes = ["mcp:admin"]
            {additional}
            "#
        )
    }

    /// Returns the algorithm with which tokens are signed.
    pub(super) const fn algorithm(self) -> Algorithm {
        match self {
            Self::Es256 => Algorithm::Es256,
            _ => Algorithm::Rs256,
        }
    }

    /// The settings of the issuer.
    fn issuer(self, folder: &Path) -> String {
        match self {
            Self::Standard
            | Self::AllOn
            | Self::Audited
            | Self::Es256
            | Self::Metrics
            | Self::Traces { .. } => {
                let keys = folder.join("jwks.json");
                let algorithm = self.algorithm().as_str();
                format!(
                    "issuer = \"{ISSUER}\"\njwks_file = \"{}\"\nalgorithms = [\"{algorithm}\"]",
                    keys.display()
                )
            }
            Self::Introspecting { issuer } => format!(
                "issuer = \"http://{issuer}\"\nvalidate = \"introspection\"\nclient_id = \"bench\"\n\
                 introspection_endpoint = \"http://{issuer}/introspect\""
            ),
        }
    }

    /// The tables of features that the variant has on.
    fn additional(self, folder: &Path, audit: &Path) -> String {
        match self {
            Self::Standard | Self::Es256 | Self::Introspecting { .. } => UNLIMITED.to_owned(),
            Self::AllOn => all_on(audit),
            Self::Audited => audited(audit),
            Self::Metrics => admin(folder),
            Self::Traces { receiver } => {
                format!(
                    "{}\n[traces]\nendpoint = \"http://{receiver}\"\nsample = 0.01",
                    admin(folder)
                )
            }
        }
    }
}

/// Returns a listener for administrators. With it, requests are counted.
fn admin(folder: &Path) -> String {
    let token = folder.join(ADMIN_TOKEN_FILE);
    format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\ntoken = {{ file = \"{}\" }}",
        token.display()
    )
}

/// Returns an audit trail in a file.
fn audited(audit: &Path) -> String {
    format!("[audit]\ntarget = {{ file = \"{}\" }}", audit.display())
}

/// Returns the additional settings. The rate limits are never reached.
fn all_on(audit: &Path) -> String {
    let rate = r#"{ requests = 1000000, per = "1s" }"#;
    format!(
        r#"
        [[resource.rule]]
        method = "tools/call"
        name = "add*"
        claims = [{{ claim = "typ", one_of = ["Bearer"] }}]
        limit = {rate}

        [[resource.claim]]
        claim = "azp"
        one_of = ["test-client", "other-client"]

        [limits]
        per_address = {rate}
        per_principal = {rate}

        {}
        "#,
        audited(audit)
    )
}
