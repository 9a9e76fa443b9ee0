//! Keycloak between Google and Portcullis, as `docs/guides/google.md` describes: the claim
//! `hosted_domain` admits the accounts of one organization, and a token of Google itself is
//! rejected.

use std::{path::Path, sync::Arc};

use anyhow::Context as _;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    expect,
    keycloak::{
        fixture::Fixture,
        google::{Account, GoogleImitation},
        tokens,
    },
    progress::Progress,
    request,
    server::{Server, serve},
};

/// The claim rule of the guide.
const RULE: &str =
    "\n  [[resource.claim]]\n  claim  = \"hosted_domain\"\n  one_of = [\"example.com\"]\n";

const MEMBER: Account = Account {
    name: "gina",
    hosted_domain: Some("example.com"),
};
const STRANGER: Account = Account {
    name: "hugo",
    hosted_domain: Some("example.org"),
};
/// A personal account, whose address has the organization's domain as well.
const PERSONAL: Account = Account {
    name: "ines",
    hosted_domain: None,
};

/// Runs the sign-ins of three accounts, and sends a token of Google itself.
pub(in crate::keycloak) async fn run(
    fixture: &Fixture,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let account = Arc::new(Mutex::new(MEMBER));
    let google = GoogleImitation::start(Arc::clone(&account)).await;
    progress
        .step(
            "Google is an identity provider of the realm",
            configure(fixture, &google),
        )
        .await?;
    let server = progress
        .step("a server with a claim rule starts", start(fixture))
        .await?;
    for (signed_in, what, denied) in [
        (MEMBER, "an account of the organization is admitted", None),
        (
            STRANGER,
            "an account of another organization gets 403",
            Some("claim.mismatch"),
        ),
        (
            PERSONAL,
            "a personal account gets 403",
            Some("claim.missing"),
        ),
    ] {
        *account.lock() = signed_in;
        progress
            .step(what, signs_in(fixture, &server, signed_in, denied))
            .await?;
    }
    progress
        .step(
            "a token of Google itself gets 401",
            rejects_tokens_of_google(fixture, &server),
        )
        .await
}

/// Configures the realm as the guide does, except that the identity provider has the imitation's
/// URLs.
async fn configure(fixture: &Fixture, google: &GoogleImitation) -> anyhow::Result<()> {
    let admin = &fixture.admin;
    admin.add_user_attribute("hosted_domain").await?;
    let mapper = json!({ "claim": "hd", "user.attribute": "hosted_domain", "syncMode": "FORCE" });
    admin
        .add_identity_provider("google", "oidc", google.settings())
        .await?;
    admin
        .add_identity_provider_mapper("google", "oidc-user-attribute-idp-mapper", mapper)
        .await?;
    admin
        .add_scope_mapper(
            "mcp:tools",
            "oidc-usermodel-attribute-mapper",
            json!({
                "user.attribute": "hosted_domain", "claim.name": "hosted_domain", "jsonType.label": "String",
                "access.token.claim": "true", "introspection.token.claim": "true", "id.token.claim": "false",
            }),
        )
        .await?;

    // Keycloak has the URLs of Google's own provider built in. Its settings of the guide are
    // accepted.
    let settings = json!({ "clientId": "web", "clientSecret": "a-secret-of-tests", "hostedDomain": "example.com" });
    let mapper =
        json!({ "jsonField": "hd", "userAttribute": "hosted_domain", "syncMode": "FORCE" });
    admin
        .add_identity_provider("google-itself", "google", settings)
        .await?;
    admin
        .add_identity_provider_mapper("google-itself", "google-user-attribute-mapper", mapper)
        .await
}

async fn start(fixture: &Fixture) -> anyhow::Result<Server> {
    let configuration = with_rule(&fixture.addresses.file("jwt.toml")?)?;
    let folder: &Path = &fixture.folder;
    let mut command = serve(&fixture.program, folder, "google", &configuration)?;
    command.args(["--listen", "127.0.0.1:0"]);
    let server = Server::start("google", &mut command, folder).await?;
    server.ready().await?;
    Ok(server)
}

/// Returns the configuration with the claim rule, before the rules by message.
fn with_rule(configuration: &str) -> anyhow::Result<String> {
    let (resource, rules) = configuration
        .split_once("\n  [[resource.rule]]")
        .context("jwt.toml has no rule")?;
    Ok(format!("{resource}{RULE}\n  [[resource.rule]]{rules}"))
}

async fn signs_in(
    fixture: &Fixture,
    server: &Server,
    account: Account,
    denied: Option<&str>,
) -> anyhow::Result<()> {
    let client = fixture.client("mcp-cli")?;
    let token = client.tokens_through("mcp:tools", "google").await?.access;
    let claim = &tokens::claims(&token)?["hosted_domain"];
    expect::equal(
        "hosted_domain of the token",
        account.hosted_domain,
        claim.as_str(),
    )?;
    let Some(code) = denied else {
        return fixture.admitted_by("google", server, &token).await;
    };
    let response = fixture
        .send(request::tool_list(server.address, &token)?)
        .await?;
    expect::equal("status", StatusCode::FORBIDDEN, response.status)?;
    expect::equal(
        "reason",
        code,
        server.deny_code_of(&response.headers).await?.as_str(),
    )
}

async fn rejects_tokens_of_google(fixture: &Fixture, server: &Server) -> anyhow::Result<()> {
    let response = fixture
        .send(request::tool_list(
            server.address,
            GoogleImitation::ACCESS_TOKEN,
        )?)
        .await?;
    expect::equal("status", StatusCode::UNAUTHORIZED, response.status)?;
    expect::equal(
        "reason",
        "token.malformed",
        server.deny_code_of(&response.headers).await?.as_str(),
    )
}
