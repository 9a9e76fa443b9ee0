//! The command line of `portcullis idp`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

#[derive(Args)]
pub struct Idp {
    /// Where to listen; loopback only.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9000")]
    pub(crate) listen: SocketAddr,
    /// The path of the issuer, such as `/realms/dev`; none by default.
    #[arg(
        long,
        value_name = "PATH",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) issuer_path: String,
    /// Grant every authorization request without consent, as the user that `--user` names.
    #[arg(long)]
    pub(crate) auto_consent: bool,
    /// The user name that the consent page proposes.
    #[arg(long, value_name = "NAME", default_value = "alice")]
    pub(crate) user: String,
    /// A scope that can be granted. May be repeated.
    #[arg(long = "scope", value_name = "SCOPE", default_value = "mcp:tools")]
    pub(crate) scopes: Vec<String>,
    /// The resource for requests that name none. Without it, such requests are rejected, unless
    /// they have the scope `openid`.
    #[arg(long, value_name = "URL")]
    pub(crate) default_resource: Option<String>,
    /// The signature algorithm of access tokens and ID tokens.
    #[arg(long, value_enum, value_name = "ALGORITHM", default_value = "RS256")]
    pub(crate) algorithm: Algorithm,
    /// Write `at+jwt` into the header of access tokens, instead of `JWT`.
    #[arg(long)]
    pub(crate) at_jwt: bool,
    /// The lifetime of an access token, 1s to 1h.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration)]
    pub(crate) token_lifetime: Duration,
    /// Imitate what a provider rejects, omits and renames. The server prints the differences when
    /// it starts.
    #[arg(long, value_enum, value_name = "PROVIDER")]
    pub(crate) like: Option<Like>,
    /// Add a claim to access tokens, such as `groups='["admins"]'`: JSON, or else a string. May be
    /// repeated.
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    pub(crate) claims: Vec<String>,
    /// A TOML file of users whose claims in ID tokens and at the userinfo endpoint are configured;
    /// see below. Other users can sign in as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    /// How the token endpoint authenticates clients; see below.
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        default_value = "registered",
        hide_possible_values = true
    )]
    pub(crate) client_auth: ClientAuth,
    /// A TOML file of preconfigured clients, including resources that may introspect; see below.
    #[arg(long, value_name = "FILE")]
    pub(crate) clients: Option<PathBuf>,
    /// Require the token in this file as a bearer token for registration.
    #[arg(long, value_name = "FILE", conflicts_with = "no_registration")]
    pub(crate) initial_access_token_file: Option<PathBuf>,
    /// Disable dynamic registration.
    #[arg(long)]
    pub(crate) no_registration: bool,
    /// Reject client ID metadata documents.
    #[arg(long)]
    pub(crate) no_client_documents: bool,
    /// Require a nonce in DPoP proofs.
    #[arg(long)]
    pub(crate) dpop_nonces: bool,
    /// Serve `/admin/rotate`, `/admin/faults`, `/admin/forget`, `/admin/device`, `/admin/user` and
    /// `/admin/logout`, for tests; see below.
    #[arg(long)]
    pub(crate) admin: bool,
}

/// A provider to imitate.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Like {
    /// Microsoft Entra ID, tokens of version 2.0.
    Entra,
    /// Microsoft Entra ID, tokens of version 1.0.
    EntraV1,
    /// Google.
    Google,
    /// GitHub, an OAuth app.
    #[value(name = "github")]
    GitHub,
    /// GitHub, a GitHub App whose tokens expire.
    #[value(name = "github-app")]
    GitHubApp,
    /// Okta, a custom authorization server.
    Okta,
    /// Auth0.
    Auth0,
    /// Keycloak.
    Keycloak,
    /// Authentik.
    Authentik,
    /// Amazon Cognito, a user pool.
    Cognito,
}

/// How the token endpoint authenticates clients.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ClientAuth {
    Registered,
    PythonSdk,
    RejectBasic,
    RejectPost,
    BasicWithoutBody,
}

/// A signature algorithm.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Algorithm {
    /// RSA with SHA-256.
    #[value(name = "RS256")]
    Rs256,
    /// ECDSA on P-256.
    #[value(name = "ES256")]
    Es256,
}

/// The text of `--help` after the options.
pub(crate) const MORE: &str = r#"Example:
  portcullis idp --auto-consent

The file of --clients:
  [[client]]                                 # a protected resource that introspects
  id = "portcullis"
  secret = { env = "IDP_SECRET" }            # or { file = "/path" }
  introspect = true

  [[client]]                                 # a desktop client
  id = "desktop"
  redirect_uris = ["http://127.0.0.1/callback"]
  # name, scopes, grant_types (default: authorization_code and refresh_token with redirect URIs, else none;
  # urn:ietf:params:oauth:grant-type:device_code for the device flow),
  # auth_method (default: none; client_secret_basic with a secret; private_key_jwt with jwks_file),
  # backchannel_logout_uri

  [[client]]                                 # a machine
  id = "nightly"
  jwks_file = "nightly-public.json"
  grant_types = ["client_credentials"]

The file of --users:
  [[user]]
  name = "alice"
  claims = { groups = ["admins"], email = "alice@corp.example" }
  # with --like github: id (a number), login, name, email, orgs = ["ORG"], teams = ["ORG/SLUG"]

The modes of --client-auth:
  registered           the method that the client registered
  python-sdk           as servers built on the Python SDK for MCP: client_secret_post and client_secret_basic are listed,
                       registrations say client_secret_post, and every request needs client_id in its body
  reject-basic         client_secret_basic is listed and answered with invalid_client
  reject-post          client_secret_post is listed and answered with invalid_client
  basic-without-body   client_secret_basic with client_id in the body is answered with invalid_client

With --admin, as JSON and from programs only:
  curl -X POST  http://127.0.0.1:9000/admin/rotate -H 'Content-Type: application/json' -d '{"old_keys":"keep"}'
                old_keys: keep (published while their tokens live) or withdraw (gone at once)
  curl -X POST  http://127.0.0.1:9000/admin/faults -H 'Content-Type: application/json' \
                -d '{"at":"token","kind":"status","status":503,"times":2}'
                at: metadata, jwks, register, client, authorize, device_authorization, token, introspect, revoke, userinfo,
                id_token, logout_token
                kind: status (status), delay (delay_ms), garbage, hang, drop, wrong_issuer; times: how often, else always
                kind at id_token and logout_token: wrong_issuer, wrong_audience, wrong_azp, wrong_nonce, no_nonce,
                wrong_subject, expired, alg_none, unknown_key, wrong_signature, groups_overage, no_token
  curl -X DELETE http://127.0.0.1:9000/admin/faults
  curl -X POST  http://127.0.0.1:9000/admin/forget -H 'Content-Type: application/json' -d '{"client_id":"..."}'
                without client_id: all registered clients
  curl -X POST  http://127.0.0.1:9000/admin/device -H 'Content-Type: application/json' \
                -d '{"user_code":"BCDF-GHJK","decision":"allow","user":"alice"}'
                decision: allow or deny
  curl -X POST  http://127.0.0.1:9000/admin/user -H 'Content-Type: application/json' -d '{"user":"alice","action":"remove"}'
                action: remove or restore
  curl -X POST  http://127.0.0.1:9000/admin/logout -H 'Content-Type: application/json' -d '{"user":"alice"}'
                sends logout tokens to the backchannel_logout_uri of clients"#;
