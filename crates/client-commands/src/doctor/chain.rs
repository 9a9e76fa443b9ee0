//! `portcullis doctor --login`: signs in and calls a tool.

mod event_stream;

use std::error::Error;

use anyhow::Context as _;
use http::StatusCode;
use portcullis_client::{
    ClientError, InteractionError, ResourceToken, Shortened, SignOut, StartUrl, error_chain,
    store::CredentialStore,
};
use portcullis_discovery::Product;
use portcullis_doctor::{Finding, Hop, Rule, Step};
use portcullis_mcp_client::{McpClient, McpError, McpSettings};
use portcullis_metadata::EscapedText;
use portcullis_terminal::{counted, network_advice, redact, remedy};
use serde_json::{Value, json};

use crate::{
    cli,
    sign_in::{self, LoginOptions, SignIn},
};

const TOKEN: Rule = Rule::new("login.token", "OAuth 2.1 section 4.1");
const SCOPES: Rule = Rule::new("login.scopes", "RFC 6749 section 5.1");
const REFRESH: Rule = Rule::new("login.refresh_token", "RFC 6749 section 6");
const INITIALIZE: Rule = Rule::new("login.initialize", "MCP lifecycle");
const TOOLS: Rule = Rule::new("login.tools", "MCP tools");
const CALL: Rule = Rule::new("login.call", "MCP tools");
const REVOKED: Rule = Rule::new("login.revocation", "RFC 7009 section 2");

/// How many names of tools are shown, and how many characters of a name.
const MAX_TOOLS: usize = 10;
const MAX_NAME: usize = 64;

/// The maximum size of a message, in bytes. Results are read as values, which take up to 80 times
/// their text.
const MAX_MESSAGE: usize = 2 * 1024 * 1024;

/// The chain from the sign-in to a tool call.
pub(super) struct Chain<'a> {
    arguments: &'a cli::Doctor,
    start: StartUrl,
    tool_arguments: Value,
}

type OnStep<'a> = dyn FnMut(&Step) + Send + 'a;

impl<'a> Chain<'a> {
    /// Checks the arguments, without requests.
    pub(super) fn prepare(arguments: &'a cli::Doctor) -> anyhow::Result<Self> {
        anyhow::ensure!(
            std::env::var_os(sign_in::TOKEN_VARIABLE).is_none(),
            "{} is set and replaces the sign-in; unset it",
            sign_in::TOKEN_VARIABLE
        );
        let tool_arguments = match &arguments.tool_arguments {
            Some(text) => serde_json::from_str(text).context("--tool-arguments is not JSON")?,
            None => json!({}),
        };
        anyhow::ensure!(
            tool_arguments.is_object(),
            "--tool-arguments is not a JSON object"
        );
        Ok(Self {
            arguments,
            start: StartUrl::parse(&arguments.sign_in.url)?,
            tool_arguments,
        })
    }

    /// Runs the steps up to the first that fails. Fails when the sign-in cannot be prepared.
    pub(super) async fn run(
        self,
        product: Product,
        on_step: &mut OnStep<'_>,
    ) -> anyhow::Result<Vec<Step>> {
        let directory = self
            .arguments
            .sign_in
            .store
            .directory
            .clone()
            .or_else(CredentialStore::user_directory);
        // The registration is kept for the next sign-in, and the token is not.
        let arguments = &self.arguments.sign_in;
        let store = directory.map_or_else(
            || sign_in::store_in_memory(arguments),
            CredentialStore::clients_in_directory,
        );
        let login = LoginOptions::default();
        let SignIn {
            token_manager,
            fetch,
        } = sign_in::prepare_login(arguments, product, self.start.clone(), store, login).await?;
        let mut steps = Steps {
            done: Vec::new(),
            on_step,
        };

        let mut step = Step::new("the user signs in").at_hop(Hop::Token);
        let signed_in = match token_manager.sign_in().await {
            Ok(token) => {
                step.findings = token_findings(&token);
                true
            }
            Err(error) => {
                step.findings.push(failure(TOKEN, &error));
                false
            }
        };
        steps.add(step);
        if !signed_in {
            return Ok(steps.done);
        }
        let mut settings = McpSettings::default();
        settings.client_version = product.version.into();
        settings.max_message = MAX_MESSAGE;
        let client = McpClient::with_token_manager(token_manager.clone(), fetch, settings);
        self.session(&client, &mut steps).await;
        if let Err(error) = client.delete().await {
            tracing::debug!(error = %error, "the session was not ended");
        }
        let mut step = Step::new("the token is revoked").at_hop(Hop::Token);
        step.findings.push(match token_manager.sign_out().await {
            Ok(SignOut::Revoked) => Finding::met(REVOKED, "the authorization server revoked it"),
            Ok(_) => Finding::note(
                REVOKED,
                "the authorization server does not revoke it: it is valid until it expires",
            ),
            Err(error) => Finding::warning(
                REVOKED,
                format!(
                    "it is deleted on this machine, but not revoked: {}",
                    described(&error)
                ),
                "find out why the revocation endpoint fails",
            ),
        });
        steps.add(step);
        Ok(steps.done)
    }

    /// The handshake, the list of tools, a call, and the stream of the server's own messages.
    async fn session(&self, client: &McpClient, steps: &mut Steps<'_, '_>) {
        let mut step = Step::new("a client opens a session").at_hop(Hop::Server);
        let opened = client.initialize().await;
        let is_open = opened.is_ok();
        step.findings.push(match opened {
            Ok(server) => Finding::met(
                INITIALIZE,
                format!("the server is {}", server_name(server.as_ref())),
            ),
            Err(error) => self.initialize_failure(&error),
        });
        steps.add(step);
        if !is_open {
            return;
        }
        let mut step = Step::new("a client lists the tools").at_hop(Hop::Server);
        let listed = client.call("tools/list", None).await;
        let tools = match &listed {
            Ok(result) => result.get("tools").and_then(Value::as_array),
            Err(_) => None,
        };
        step.findings.push(match (&listed, tools) {
            (Err(error), _) => mcp_failure(TOOLS, error),
            (Ok(_), Some(tools)) => Finding::met(TOOLS, names(tools)),
            (Ok(_), None) => {
                Finding::problem(TOOLS, "the result has no `tools`", "return a list of tools")
            }
        });
        let selected = self.tool(tools.map_or(&[][..], Vec::as_slice));
        let is_listed = tools.is_some();
        steps.add(step);
        if !is_listed {
            return;
        }
        let mut step = Step::new("a client calls a tool").at_hop(Hop::Server);
        step.findings.push(match selected {
            None => Finding::note(
                CALL,
                "no tool is marked as read-only (readOnlyHint) and needs no arguments; name one with --tool",
            ),
            Some(name) => self.call(client, &name).await,
        });
        steps.add(step);
        // Only now is it known that other responses arrive.
        if let Some(finding) = event_stream::finding(client).await {
            let mut step =
                Step::new("a client listens to the server's messages").at_hop(Hop::Server);
            step.findings.push(finding);
            steps.add(step);
        }
    }

    /// The handshake has no session yet, so that a 404 to a request with a token is about the path.
    fn initialize_failure(&self, error: &McpError) -> Finding {
        if status(error) != Some(StatusCode::NOT_FOUND) {
            return mcp_failure(INITIALIZE, error);
        }
        let text = described(error);
        let fix = format!(
            "{} was requested; correct this path, or the path in `upstream` of the server's configuration, which `portcullis \
             check --online` examines there",
            self.start
        );
        Finding::problem(INITIALIZE, text, fix)
    }

    async fn call(&self, client: &McpClient, name: &str) -> Finding {
        let params = json!({ "name": name, "arguments": self.tool_arguments });
        let shown = EscapedText::first(name, MAX_NAME);
        match client.call("tools/call", Some(params)).await {
            Ok(result) if result.get("isError") == Some(&Value::Bool(true)) => Finding::warning(
                CALL,
                format!("{shown} was called and reported an error"),
                "see the server's log",
            ),
            Ok(_) => Finding::met(CALL, format!("{shown} was called")),
            Err(error) => mcp_failure(CALL, &error),
        }
    }

    /// The tool to call: the named one, or the first without effects and required arguments.
    fn tool(&self, tools: &[Value]) -> Option<String> {
        if let Some(named) = &self.arguments.tool {
            return Some(named.clone());
        }
        let is_harmless = |tool: &&Value| {
            let required = tool
                .pointer("/inputSchema/required")
                .and_then(Value::as_array);
            tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true))
                && required.is_none_or(Vec::is_empty)
        };
        tools
            .iter()
            .find(is_harmless)?
            .get("name")?
            .as_str()
            .map(str::to_owned)
    }
}

/// The steps so far.
struct Steps<'a, 'b> {
    done: Vec<Step>,
    on_step: &'a mut OnStep<'b>,
}

impl Steps<'_, '_> {
    fn add(&mut self, mut step: Step) {
        // Scopes and URLs of a server can repeat what was sent to it.
        for finding in &mut step.findings {
            finding.text = redact(&finding.text).into_owned();
        }
        (self.on_step)(&step);
        self.done.push(step);
    }
}

fn token_findings(token: &ResourceToken) -> Vec<Finding> {
    let scopes = token
        .scopes()
        .map(|scopes| scopes.to_string())
        .filter(|scopes| !scopes.is_empty());
    let scopes = scopes.unwrap_or_else(|| "no named scopes".to_owned());
    let mut findings = vec![Finding::met(
        TOKEN,
        format!(
            "{} issued a token with {}",
            token.issuer(),
            Shortened(scopes)
        ),
    )];
    let missing = token.ungranted_scopes();
    if !missing.is_empty() {
        let fix = "allow these scopes for the client or the user at the authorization server";
        findings.push(Finding::warning(
            SCOPES,
            format!("it did not grant: {}", Shortened(missing)),
            fix,
        ));
    }
    findings.push(match token.refresh_token() {
        Some(_) => Finding::met(REFRESH, "there is a refresh token"),
        None => Finding::note(
            REFRESH,
            "there is no refresh token: users sign in again when the token expires",
        ),
    });
    findings
}

/// The failure of a request with a token.
fn mcp_failure(rule: Rule, error: &McpError) -> Finding {
    let is_unavailable = matches!(
        status(error),
        Some(
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        )
    );
    if !is_unavailable {
        return failure(rule, error);
    }
    let fix =
        "start the MCP server; `portcullis check --online`, where Portcullis runs, names the cause";
    Finding::problem(rule, described(error), fix)
}

/// The status of the response in an error.
fn status(error: &McpError) -> Option<StatusCode> {
    match error {
        McpError::Status { status, .. } => Some(*status),
        McpError::Rpc(error) => Some(error.status),
        _ => None,
    }
}

fn failure(rule: Rule, error: &(dyn Error + 'static)) -> Finding {
    let alone = || EscapedText(&error_chain(error)).to_string();
    if let Some(fix) = fix_without_browser(error) {
        return Finding::problem(rule, alone(), fix);
    }
    // A remedy of its own sentence or clause is the fix. Another one continues the text.
    let remedy = remedy(error);
    if let Some(fix) = remedy
        .strip_prefix("; ")
        .or_else(|| remedy.strip_prefix(". "))
    {
        return Finding::problem(rule, alone(), EscapedText(fix).to_string());
    }
    Finding::problem(
        rule,
        described(error),
        network_advice(error)
            .unwrap_or("see the server's log; PORTCULLIS_LOG=debug shows every request"),
    )
}

/// The fix if no browser can be opened, or a user is required: other commands have more options.
fn fix_without_browser(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(current) = next {
        match interaction(current) {
            Some(InteractionError::NoBrowser) => {
                return Some(
                    "give --no-browser, which prints the URL to visit and waits, or --auto-consent at a development server that was \
                     started with it (`portcullis idp --auto-consent`, `portcullis demo --auto-consent`)",
                );
            }
            Some(InteractionError::UserRequired { .. }) => {
                return Some(
                    "sign in without --auto-consent, in a browser or with --no-browser; --auto-consent is for development servers that \
                     were started with it (`portcullis idp --auto-consent`, `portcullis demo --auto-consent`)",
                );
            }
            _ => next = current.source(),
        }
    }
    None
}

/// The error of the user's part, which is not the source of the client's error, but that error
/// itself.
fn interaction<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a InteractionError> {
    match error.downcast_ref() {
        Some(ClientError::Interaction(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

fn described(error: &(dyn Error + 'static)) -> String {
    EscapedText(&(error_chain(error) + &remedy(error))).to_string()
}

fn server_name(result: Option<&Value>) -> String {
    let name = result
        .and_then(|result| result.pointer("/serverInfo/name"))
        .and_then(Value::as_str);
    name.map_or_else(
        || "without a name".to_owned(),
        |name| EscapedText::first(name, MAX_NAME).to_string(),
    )
}

fn names(tools: &[Value]) -> String {
    let names = tools
        .iter()
        .filter_map(|tool| tool.get("name")?.as_str())
        .take(MAX_TOOLS);
    let names: Vec<_> = names
        .map(|name| EscapedText::first(name, MAX_NAME).to_string())
        .collect();
    let more = if tools.len() > MAX_TOOLS { ", …" } else { "" };
    format!(
        "{}: {}{more}",
        counted(tools.len(), "tool"),
        names.join(", ")
    )
}
