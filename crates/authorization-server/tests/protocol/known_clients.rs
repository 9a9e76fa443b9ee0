//! Real clients can register and sign in, also where only a part of their redirect URIs is usable.

use portcullis_authorization_server::client::{
    GrantType, NewClient, RedirectHosts, RedirectPolicy, RedirectUri, RegistrationRules,
    derive_client_id, parse_registration,
};
use portcullis_metadata::client::ClientMetadata;

/// A client of `fixtures/clients`.
struct Known {
    body: &'static str,
    name: &'static str,
    method: &'static str,
    /// A redirect URI that the client uses.
    used: &'static str,
    /// The redirect URIs that are neither loopback URIs nor usable without a list of hosts, if the
    /// server knows no clients.
    hosted: &'static [&'static str],
}

const CLIENTS: [Known; 8] = [
    Known {
        body: include_str!("../fixtures/clients/claude.json"),
        name: "Claude",
        method: "client_secret_post",
        used: "https://claude.ai/api/mcp/auth_callback",
        hosted: &["https://claude.ai/api/mcp/auth_callback"],
    },
    Known {
        body: include_str!("../fixtures/clients/claude-code.json"),
        name: "Claude Code (example)",
        method: "none",
        used: "http://localhost:50000/callback",
        hosted: &[],
    },
    Known {
        body: include_str!("../fixtures/clients/chatgpt.json"),
        name: "ChatGPT",
        method: "none",
        used: "https://chatgpt.com/connector/oauth/IbUR3zxyNQ16",
        hosted: &["https://chatgpt.com/connector/oauth/IbUR3zxyNQ16"],
    },
    Known {
        body: include_str!("../fixtures/clients/vscode.json"),
        name: "Visual Studio Code",
        method: "none",
        used: "http://127.0.0.1:59656/",
        hosted: &[
            "https://insiders.vscode.dev/redirect",
            "https://vscode.dev/redirect",
        ],
    },
    Known {
        body: include_str!("../fixtures/clients/cursor.json"),
        name: "Cursor",
        method: "none",
        used: "http://localhost:8787/callback",
        hosted: &[
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "https://www.cursor.com/agents/mcp/oauth/callback",
        ],
    },
    Known {
        body: include_str!("../fixtures/clients/codex.json"),
        name: "Codex",
        method: "none",
        used: "http://127.0.0.1:63546/callback/6MFBM1In3Ey-",
        hosted: &[],
    },
    Known {
        body: include_str!("../fixtures/clients/opencode.json"),
        name: "OpenCode",
        method: "none",
        used: "http://127.0.0.1:19876/mcp/oauth/callback",
        hosted: &[],
    },
    Known {
        body: include_str!("../fixtures/clients/copilot-studio.json"),
        name: "Copilot Studio",
        method: "client_secret_basic",
        used: "https://global.consent.azure-apim.net/redirect/new-5fexample-5ff5dc2f63c87a6469",
        hosted: &[
            "https://global.consent.azure-apim.net/redirect/new-5fexample-5ff5dc2f63c87a6469",
        ],
    },
];

/// A server that knows no clients and lists no hosts.
struct LoopbackOnly;

impl RedirectPolicy for LoopbackOnly {
    fn is_usable(&self, uri: &RedirectUri) -> bool {
        uri.is_loopback()
    }
}

fn metadata(known: &Known) -> ClientMetadata {
    parse_registration(known.body.as_bytes()).unwrap()
}

fn register(known: &Known) -> NewClient {
    let hosts = RedirectHosts::default();
    let rules = RegistrationRules::Lenient(&hosts);
    NewClient::from_metadata(metadata(known), rules, None).unwrap()
}

#[test]
fn each_registers_without_a_list_of_hosts() {
    for known in &CLIENTS {
        let NewClient {
            client,
            information,
        } = register(known);
        assert_eq!(client.name.as_deref(), Some(known.name));
        let grant_types = [GrantType::AuthorizationCode, GrantType::RefreshToken];
        assert_eq!(client.grant_types, grant_types, "{}", known.name);
        let registered = information.metadata;
        let method = registered.token_endpoint_auth_method.as_deref();
        assert_eq!(method, Some(known.method), "{}", known.name);
        let has_secret = information.client_secret.is_some();
        assert_eq!(has_secret, known.method != "none", "{}", known.name);
        assert_eq!(registered.redirect_uris, metadata(known).redirect_uris);

        for uri in &client.redirect_uris {
            assert!(RedirectHosts::default().is_usable(uri), "{}", uri.as_str());
        }
        let mut uris = client.redirect_uris.iter();
        let is_registered = uris.any(|uri| uri.match_requested(known.used).is_some());
        assert!(is_registered, "{}", known.used);
    }
}

#[test]
fn a_public_client_has_one_identifier() {
    const KEY: [u8; 32] = [3; 32];
    let id = |known| derive_client_id(&KEY, &register(known).client).unwrap();
    let mut ids = Vec::new();
    for known in &CLIENTS {
        let is_public = known.method == "none";
        assert_eq!(id(known) == id(known), is_public, "{}", known.name);
        ids.push(id(known));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), CLIENTS.len());
}

#[test]
fn a_client_with_a_usable_redirect_uri_registers_although_others_are_not() {
    for known in &CLIENTS {
        let rules = RegistrationRules::Lenient(&LoopbackOnly);
        let new = NewClient::from_metadata(metadata(known), rules, None);
        let can_register = metadata(known).redirect_uris.len() > known.hosted.len();
        assert_eq!(new.is_ok(), can_register, "{}", known.name);
        let unusable: Vec<_> = new
            .iter()
            .flat_map(|new| &new.client.redirect_uris)
            .filter(|uri| !LoopbackOnly.is_usable(uri))
            .map(RedirectUri::as_str)
            .collect();
        if can_register {
            assert_eq!(unusable, known.hosted, "{}", known.name);
        }
    }
}
