//! The development authorization server, plain and with each `--like`, in front of
//! `portcullis serve`.

use std::{fs, net::SocketAddr};

use anyhow::Context as _;
use portcullis_scenarios::{Peer, PeerRequest, PeerResponse, free_address};
use serde_json::json;
use url::Url;

use super::{
    Environment,
    site::{Site, Start},
};
use crate::{
    deployment::{ANNOUNCEMENT, SCOPE},
    program::Program,
    server::{Server, command, serve},
};

/// The arguments of the server and of the client. `{url}` stands for the resource, `{secret}` for
/// the file of the client's secret.
pub(super) struct Provider {
    idp: &'static [&'static str],
    options: &'static [&'static str],
    resource: Resource,
}

/// The protected resource in front of the tools.
enum Resource {
    /// `portcullis serve`.
    Gateway {
        /// The path of the tokens' issuer, if it is not that of the metadata.
        issuer_path: Option<&'static str>,
        /// Further lines of its issuer.
        issuer: &'static str,
        scopes_supported: &'static str,
    },
    /// A server that accepts every token, because the provider's tokens are opaque and only its own
    /// API validates them.
    Accepting,
}

const GATEWAY: Resource = Resource::Gateway {
    issuer_path: None,
    issuer: "",
    scopes_supported: SCOPE,
};

pub(super) const PLAIN: Provider = Provider {
    idp: &[],
    options: &[],
    resource: GATEWAY,
};
pub(super) const WITH_ADMIN: Provider = Provider {
    idp: &["--admin"],
    options: &[],
    resource: GATEWAY,
};
pub(super) const ENTRA: Provider = Provider {
    idp: &["--like", "entra"],
    options: ENTRA_OPTIONS,
    resource: Resource::Gateway {
        issuer_path: None,
        issuer: "audiences = [\"00001111-aaaa-2222-bbbb-3333cccc4444\"]",
        scopes_supported: "api://00001111-aaaa-2222-bbbb-3333cccc4444/mcp:tools",
    },
};
pub(super) const ENTRA_V1: Provider = Provider {
    idp: &["--like", "entra-v1"],
    options: ENTRA_OPTIONS,
    resource: Resource::Gateway {
        issuer_path: Some("/sts.windows.net/aaaabbbb-0000-cccc-1111-dddd2222eeee/"),
        issuer: "audiences = [\"api://00001111-aaaa-2222-bbbb-3333cccc4444\"]",
        scopes_supported: "api://00001111-aaaa-2222-bbbb-3333cccc4444/mcp:tools",
    },
};
pub(super) const GOOGLE: Provider = Provider {
    idp: &["--like", "google"],
    options: &[
        "--client-id",
        "web",
        "--client-secret-file",
        "{secret}",
        "--authorize-param",
        "access_type=offline",
        "--authorize-param",
        "prompt=consent",
    ],
    resource: Resource::Accepting,
};
pub(super) const GITHUB: Provider = Provider {
    idp: &["--like", "github"],
    options: &["--client-id", "web", "--client-secret-file", "{secret}"],
    resource: Resource::Accepting,
};
pub(super) const OKTA: Provider = Provider {
    idp: &["--like", "okta", "--default-resource", "{url}"],
    options: &["--client-id", "desktop"],
    resource: GATEWAY,
};
pub(super) const AUTH0: Provider = Provider {
    idp: &["--like", "auth0"],
    options: &["--authorize-param", "audience={url}"],
    resource: GATEWAY,
};
pub(super) const KEYCLOAK: Provider = Provider {
    idp: &["--like", "keycloak", "--default-resource", "{url}"],
    options: &[],
    resource: GATEWAY,
};
pub(super) const AUTHENTIK: Provider = Provider {
    idp: &["--like", "authentik", "--default-resource", "{url}"],
    options: &["--client-id", "desktop"],
    resource: GATEWAY,
};

/// The options that the table of known issuers would choose for Entra ID's own hosts.
const ENTRA_OPTIONS: &[&str] = &[
    "--client-id",
    "desktop",
    "--no-resource",
    "--assume-pkce",
    "--accept-unbound-token",
];

const CLIENTS: &str = r#"
[[client]]
id = "desktop"
redirect_uris = ["http://127.0.0.1/callback"]

[[client]]
id = "web"
secret = { file = "{secret}" }
auth_method = "client_secret_post"
redirect_uris = ["http://127.0.0.1/callback"]
"#;

/// Starts the authorization server, and the resource that trusts it.
pub(super) async fn start(
    provider: &Provider,
    environment: &Environment<'_>,
) -> anyhow::Result<Start> {
    let folder = environment.folder;
    let address = free_address()?;
    let secret = folder.join("secret");
    let clients = folder.join("clients.toml");
    let secret_text = secret.to_str().context("the target folder is not UTF-8")?;
    fs::write(&secret, "a-secret-of-tests\n")?;
    fs::write(&clients, CLIENTS.replace("{secret}", secret_text))?;

    let url = Url::parse(&format!("http://{address}/mcp"))?;
    let put = |text: &&str| {
        text.replace("{url}", url.as_str())
            .replace("{secret}", secret_text)
    };
    let mut idp = command(environment.program);
    idp.args(["idp", "--listen", "127.0.0.1:0"])
        .args(provider.idp.iter().map(put))
        .arg("--clients")
        .arg(&clients);
    let mut idp = Program::start("idp", &mut idp, folder)?;
    let issuer = idp
        .find_line(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned))
        .await?;
    let issuer_url = Url::parse(&issuer)?;
    let mut site = match provider.resource {
        Resource::Accepting => {
            let peer = Peer::start(accepting_resource(issuer)).await;
            Site::new(Url::parse(&peer.url("/mcp"))?).keeping(peer)
        }
        Resource::Gateway {
            issuer_path,
            issuer: lines,
            scopes_supported,
        } => {
            let issuer = match issuer_path {
                Some(path) => issuer_url.join(path)?.to_string(),
                None => issuer,
            };
            let configuration = configuration(address, &issuer, lines, scopes_supported, "");
            let mut serve = serve(environment.program, folder, "serve", &configuration)?;
            let server = Server::start("serve", &mut serve, folder).await?;
            server.ready().await?;
            Site::new(url.clone()).keeping(server)
        }
    };
    site.forget = Some(issuer_url.join("/admin/forget")?);
    Ok(Start::ready(
        site.with_options(provider.options.iter().map(put))
            .keeping(idp),
    ))
}

/// Returns the configuration of a server with one resource at `/mcp`.
pub(super) fn configuration(
    address: SocketAddr,
    issuer: &str,
    issuer_lines: &str,
    scopes_supported: &str,
    tables: &str,
) -> String {
    let (scheme, host) = if tables.contains("[tls]") {
        ("https", "localhost")
    } else {
        ("http", "127.0.0.1")
    };
    format!(
        r#"
listen = "{address}"
base_url = "{scheme}://{host}:{}"
{tables}
[[issuer]]
issuer = "{issuer}"
{issuer_lines}

[[resource]]
endpoint = "/mcp"
scopes_supported = ["{scopes_supported}"]
required_scopes = ["{SCOPE}"]
upstream = "demo"
"#,
        address.port()
    )
}

/// Returns an MCP server with one tool that accepts every token, with metadata that names this
/// issuer.
pub(super) fn accepting_resource(
    issuer: String,
) -> impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static {
    move |request| {
        if request.is_for_resource_metadata("/mcp") {
            let resource = format!("{}/mcp", request.base);
            let metadata = json!({
                "resource": resource, "authorization_servers": [issuer], "scopes_supported": [SCOPE],
            });
            return Some(request.json(metadata));
        }
        let is_list = request.path == "/mcp" && request.message()["method"] == "tools/list";
        let tools = json!({ "tools": [{ "name": "add", "inputSchema": { "type": "object" } }] });
        (is_list && request.authorization.is_some()).then(|| request.result(tools))
    }
}
