//! `portcullis call URL METHOD [PARAMS]`: one call, with sign-in.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use http::StatusCode;
use owo_colors::{OwoColorize as _, Stream};
use portcullis_client::{StartUrl, store::CredentialStore};
use portcullis_discovery::Product;
use portcullis_mcp::Revision;
use portcullis_mcp_client::{McpClient, McpError, McpSettings};
use portcullis_metadata::EscapedText;
use portcullis_terminal::{RawJson, print_raw_json, redact, tell};
use serde::Deserialize;
use serde_json::{Number, Value, json, value::RawValue};

use crate::{
    cli,
    end_signals::until_signal,
    sign_in::{self, SignIn},
};

/// The exit code for a result with `isError`: the call reached the tool, and the tool failed.
const TOOL_ERROR: u8 = 3;

pub(crate) fn run(arguments: &cli::Call, product: Product) -> anyhow::Result<ExitCode> {
    let start = StartUrl::parse(&arguments.sign_in.url)?;
    let params = arguments.params.as_deref().map(object).transpose()?;
    let params = with_progress_token(&arguments.method, params);
    let runtime = crate::control_runtime()?;
    let outcome = runtime.block_on(call(arguments, product, start, params));
    // After a signal, the resolution of a name must not delay the end.
    runtime.shutdown_background();
    outcome
}

/// Parses the parameters, which must be an object: MCP has no parameters by position. Errors do not
/// contain them, because they can hold secrets.
fn object(text: &str) -> anyhow::Result<Value> {
    let value: Value = serde_json::from_str(text).context("PARAMS is not JSON")?;
    anyhow::ensure!(
        value.is_object(),
        "PARAMS is not a JSON object, such as '{{\"name\":\"add\"}}'"
    );
    Ok(value)
}

/// Adds a progress token to the parameters of a tool call, without which servers send no progress.
fn with_progress_token(method: &str, params: Option<Value>) -> Option<Value> {
    if method != "tools/call" {
        return params;
    }
    let mut params = params.unwrap_or_else(|| json!({}));
    let has_meta = params.get("_meta").is_some_and(Value::is_object);
    if has_meta {
        if params["_meta"].get("progressToken").is_none() {
            params["_meta"]["progressToken"] = json!(1);
        }
    } else if params.get("_meta").is_none() {
        params["_meta"] = json!({ "progressToken": 1 });
    }
    Some(params)
}

async fn call(
    arguments: &cli::Call,
    product: Product,
    start: StartUrl,
    params: Option<Value>,
) -> anyhow::Result<ExitCode> {
    let store = store(arguments, &start)?;
    let sign_in = sign_in::prepare_within_scope(&arguments.sign_in, product, start, store).await?;
    let token_manager = Arc::clone(&sign_in.token_manager);
    until_signal(
        &token_manager,
        call_with(arguments, product, sign_in, params),
    )
    .await
}

async fn call_with(
    arguments: &cli::Call,
    product: Product,
    sign_in: SignIn,
    params: Option<Value>,
) -> anyhow::Result<ExitCode> {
    let SignIn {
        token_manager,
        fetch,
    } = sign_in;
    let mut settings = McpSettings::default();
    settings.client_version = product.version.into();
    settings.max_message = usize::from(arguments.max_message) * 1024 * 1024;
    if arguments.modern {
        settings.revision = Revision::V2026_07_28;
    }
    let client = McpClient::with_token_manager(token_manager, fetch, settings);
    client
        .open()
        .await
        .map_err(|error| with_hint(arguments, error))?;
    let answer = client.call_raw(&arguments.method, params, &mut show).await;
    if !arguments.modern
        && let Err(error) = client.delete().await
    {
        tracing::debug!(error = %error, "the session was not ended");
    }
    let result = answer.map_err(|error| with_hint(arguments, error))?;
    print_raw_json(&result)?;
    let has_failed = result.get().starts_with('{')
        && serde_json::from_str::<ToolResult<'_>>(result.get())
            .is_ok_and(|result| result.is_failure());
    Ok(if has_failed {
        ExitCode::from(TOOL_ERROR)
    } else {
        ExitCode::SUCCESS
    })
}

/// The member of a tool's result that decides the exit code.
#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow, rename = "isError")]
    is_error: Option<&'a RawValue>,
}

impl ToolResult<'_> {
    fn is_failure(&self) -> bool {
        self.is_error
            .is_some_and(|is_error| is_error.get() == "true")
    }
}

/// Adds what the user can change: the option that raises the limit to the error of a response that
/// is too large, and the path to that of a URL without an endpoint.
fn with_hint(arguments: &cli::Call, error: McpError) -> anyhow::Error {
    let limit = arguments.max_message;
    let hint = match &error {
        McpError::TooLarge | McpError::InvalidStream(_) => format!(
            "the server sent a message of more than {limit} MiB; a larger --max-message permits it"
        ),
        McpError::Status { status, .. } if is_of_missing_endpoint(*status) => {
            "the server has no MCP endpoint at this URL; correct its path, such as /mcp".to_owned()
        }
        _ => return error.into(),
    };
    anyhow::Error::from(error).context(hint)
}

/// Whether a POST request gets this status at a path without an endpoint.
fn is_of_missing_endpoint(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
    )
}

/// The user's store if it has a token for the resource. Otherwise a store that keeps only the
/// registration, which the next call reuses.
fn store(arguments: &cli::Call, start: &StartUrl) -> anyhow::Result<CredentialStore> {
    let Some(directory) = arguments
        .sign_in
        .store
        .directory
        .clone()
        .or_else(CredentialStore::user_directory)
    else {
        return Ok(sign_in::store_in_memory(&arguments.sign_in));
    };
    let store = sign_in::store(&arguments.sign_in)?;
    let is_signed_in = !store.tokens(start)?.is_empty();
    Ok(if is_signed_in {
        store
    } else {
        CredentialStore::clients_in_directory(directory)
    })
}

/// The longest message before the result that is shown whole, in bytes of JSON text.
const MAX_SHOWN: usize = 64 * 1024;
/// How many characters of a longer one are shown.
const MAX_BEGINNING: usize = 1_000;

/// Prints a message that the server sends before the result to standard error, so that standard
/// output has only the result.
fn show(message: &RawValue) {
    let text = message.get();
    if text.len() > MAX_SHOWN {
        // The search for what was sent takes many times the size of the text. It comes before the
        // cut, which could leave a part of a secret.
        let searched = redact(&text[..text.floor_char_boundary(MAX_SHOWN)]);
        let beginning = EscapedText::first(&searched, MAX_BEGINNING);
        return tell(format_args!(
            "{beginning}… (a message of {} bytes)",
            text.len()
        ));
    }
    match progress(message) {
        Some(line) => tell(line.if_supports_color(Stream::Stderr, |line| line.dimmed())),
        None => {
            tell(RawJson::compact(message).if_supports_color(Stream::Stderr, |json| json.dimmed()))
        }
    }
}

/// The members of a progress notification.
#[derive(Deserialize)]
struct Progress {
    method: String,
    params: ProgressParams,
}

#[derive(Deserialize)]
struct ProgressParams {
    progress: Number,
    total: Option<Value>,
    message: Option<Value>,
}

/// A progress notification as a line, such as `progress 3/10: reading`.
fn progress(message: &RawValue) -> Option<String> {
    if !message.get().starts_with('{') {
        return None;
    }
    let Progress { method, params } = serde_json::from_str(message.get()).ok()?;
    if method != "notifications/progress" {
        return None;
    }
    let mut line = format!("progress {}", params.progress);
    if let Some(total) = params.total.as_ref().and_then(Value::as_number) {
        line.push_str(&format!("/{total}"));
    }
    if let Some(text) = params.message.as_ref().and_then(Value::as_str) {
        line.push_str(&format!(": {}", EscapedText(text)));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn a_tool_call_asks_for_progress() {
        let sent = |method, params| with_progress_token(method, params);
        assert_eq!(sent("tools/list", None), None);
        assert_eq!(
            sent("tools/call", None),
            Some(json!({ "_meta": { "progressToken": 1 } }))
        );
        let own = json!({ "name": "a", "_meta": { "progressToken": "mine" } });
        assert_eq!(sent("tools/call", Some(own.clone())), Some(own));
        let kept = sent("tools/call", Some(json!({ "_meta": { "a": 1 } })));
        assert_eq!(
            kept,
            Some(json!({ "_meta": { "a": 1, "progressToken": 1 } }))
        );
        let odd = json!({ "_meta": 1 });
        assert_eq!(sent("tools/call", Some(odd.clone())), Some(odd));
    }

    /// J2: the error for invalid parameters does not contain them.
    #[test]
    fn parameters_are_rejected_without_their_text() {
        for text in [
            "hush",
            "[\"hush\"]",
            "\"hush\"",
            "{\"a\": hush}",
            "{\"hush\": 1} hush",
        ] {
            let error = format!("{:#}", object(text).unwrap_err());
            assert!(error.starts_with("PARAMS is not"), "{error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn progress_is_a_line() {
        let progress = |message: Value| progress(&to_raw_value(&message).unwrap());
        let line = |params: Value| {
            progress(json!({ "method": "notifications/progress", "params": params }))
        };
        assert_eq!(
            line(json!({ "progress": 3, "total": 10 })).unwrap(),
            "progress 3/10"
        );
        assert_eq!(
            line(json!({ "progress": 0.5, "message": "a\u{1b}b" })).unwrap(),
            "progress 0.5: a\\u{1b}b"
        );
        assert_eq!(line(json!({})), None);
        assert_eq!(progress(json!({ "method": "notifications/message" })), None);
    }
}
