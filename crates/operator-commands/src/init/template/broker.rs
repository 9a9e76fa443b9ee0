//! `[broker]` with its comments.

use std::fmt::Write as _;

use portcullis_identity_provider::ProviderKind;

use super::{list, quoted};
use crate::init::{
    broker::{AllowRule, BrokerValues, PAGE, example_of_allow, needs_allow},
    values::Values,
};

/// Returns the table. `values` are those of the whole file.
pub(super) fn text(values: &Values, broker: &BrokerValues) -> String {
    let source = &broker.source;
    let scope = values.scopes.first().map_or(Values::SCOPE, String::as_str);
    let mut text = format!(
        "{HEAD}# All keys: {PAGE}\n[broker]\n{CLIENTS}{DESCRIPTIONS}# scope_descriptions = {{ {} = \"Use the tools\" }}\n",
        quoted(scope)
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n  [[broker.provider]]\n  # Register an application there, with the redirect URI\n  # {}\n  # in {}\n  kind = {}",
        broker.redirect_uri(&values.base_url),
        source.redirect_uri_setting(),
        quoted(source.kind.as_str()),
    );
    let optional = [("tenant", &source.tenant), ("issuer", &source.issuer)];
    for (key, value) in optional {
        if let Some(value) = value {
            let _ = writeln!(text, "  {key} = {}", quoted(value));
        }
    }
    let _ = writeln!(
        text,
        "  client_id = {}\n  # The environment variable with the secret of the application. In place of it: {{ file = \"/path\" }}.\n  \
         client_secret = {{ env = {} }}",
        quoted(&broker.client_id),
        quoted(&broker.secret_variable)
    );
    if let Some(scopes) = broker.scopes() {
        let _ = writeln!(
            text,
            "  # The scope that the rule below needs.\n  scopes = {}",
            list(scopes.into_iter())
        );
    }
    text + &allow(broker)
}

/// Returns who may sign in.
fn allow(broker: &BrokerValues) -> String {
    let kind = broker.source.kind;
    let reason = match kind {
        ProviderKind::Google | ProviderKind::GitHub => format!(
            "Who may sign in: every rule must be met. Anyone can have an account at {}.",
            kind.display_name()
        ),
        _ => "Who may sign in: every rule must be met. Without a rule, all users of the provider may.".to_owned(),
    };
    let example = example_of_allow(kind).unwrap_or("groups=mcp-users");
    let rules = match (&*broker.allow, AllowRule::parse(example)) {
        ([], Ok(example)) if !needs_allow(kind) => {
            format!("  # allow = [{}]", rule(&example))
        }
        (rules, _) => {
            let rules: Vec<String> = rules.iter().map(rule).collect();
            format!("  allow = [{}]", rules.join(", "))
        }
    };
    format!("  # {reason}\n{rules}\n")
}

fn rule(rule: &AllowRule) -> String {
    format!(
        "{{ claim = {}, one_of = {} }}",
        quoted(&rule.claim),
        list(rule.values.iter().map(String::as_str))
    )
}

const HEAD: &str = "
# This server issues the tokens itself: MCP clients register here, and users sign in at the provider below.
";
const CLIENTS: &str = "\
# The hosts of the clients on the web. Programs on the user's machine and known clients are accepted in any case.
# clients = { redirect_hosts = [\"app.example.com\"] }
";
const DESCRIPTIONS: &str = "\
# What users read when they are asked for their consent.
";
