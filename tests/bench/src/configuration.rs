//! The configurations of the server under test.

use std::{net::SocketAddr, path::Path};

use super::portcullis::{BASE_URL, ISSUER, PATH};

/// The configurations that are measured.
#[derive(Clone, Copy)]
pub(super) enum Configuration {
    /// The defaults: signed tokens, sessions, one rule and the access log.
    Standard,
    /// With all checks and records: also an audit trail in a file, all three types of rate limits, and claim rules.
    AllOn,
    /// With opaque tokens, which are introspected at this issuer.
    Introspecting { issuer: SocketAddr },
}

impl Configuration {
    /// Returns the configuration file. The key set is in the folder.
    pub(super) fn text(self, address: SocketAddr, upstream: SocketAddr, folder: &Path, audit: &Path) -> String {
        let (issuer, all_on) =
            (self.issuer(folder), if matches!(self, Self::AllOn) { all_on(audit) } else { String::new() });
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
            {all_on}
            "#
        )
    }

    fn issuer(self, folder: &Path) -> String {
        match self {
            Self::Standard | Self::AllOn => {
                let keys = folder.join("jwks.json");
                format!("issuer = \"{ISSUER}\"\njwks_file = \"{}\"", keys.display())
            }
            Self::Introspecting { issuer } => format!(
                "issuer = \"http://{issuer}\"\nvalidate = \"introspection\"\nclient_id = \"bench\"\n\
                 introspection_endpoint = \"http://{issuer}/introspect\""
            ),
        }
    }
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

        [audit]
        target = {{ file = "{}" }}
        "#,
        audit.display()
    )
}
