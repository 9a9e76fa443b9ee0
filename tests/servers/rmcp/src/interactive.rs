//! Tools that send messages before their result, and the streams on which changes are announced.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
        CreateMessageRequestParams, ElicitRequestParams, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, SamplingMessage,
    },
    service::{SubscriptionContext, SubscriptionSink},
};
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::sleep};

use crate::{Context, McpResult, model};

const PAUSE: Duration = Duration::from_millis(50);

/// The open `subscriptions/listen` streams.
#[derive(Clone, Default)]
pub(crate) struct Listeners(Arc<Mutex<Vec<SubscriptionSink>>>);

impl Listeners {
    /// Keeps a stream until its client disconnects.
    pub(crate) async fn keep(&self, context: SubscriptionContext) -> McpResult<()> {
        self.0.lock().await.push(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }
}

/// Calls a tool that reports progress, logs, or asks the client.
pub(crate) async fn tool(
    request: &CallToolRequestParams,
    context: &Context,
    listeners: &Listeners,
) -> McpResult<CallToolResponse> {
    let argument = |name: &str| {
        let argument = request
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.get(name));
        argument
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let text = match request.name.as_ref() {
        "test_tool_with_logging" => logging(context).await?,
        "test_logging_tool" => {
            if let Some(level) = context.meta.log_level() {
                log(context, level, "logged").await?;
            }
            "done".to_owned()
        }
        "test_tool_with_progress" => progress(context).await?,
        "test_reconnection" => {
            sleep(PAUSE).await;
            "done".to_owned()
        }
        "test_sampling" => sampling(context, &argument("prompt")).await?,
        "test_elicitation" => {
            let schema = json!({"response": {"type": "string", "description": "User's response"}});
            elicitation(
                context,
                "User response",
                &argument("message"),
                schema,
                json!(["response"]),
            )
            .await?
        }
        "test_elicitation_sep1034_defaults" => {
            elicitation(
                context,
                "Elicitation completed",
                "Please review the defaults",
                defaults(),
                json!([]),
            )
            .await?
        }
        "test_elicitation_sep1330_enums" => {
            elicitation(
                context,
                "Elicitation completed",
                "Please select options",
                enums(),
                json!([]),
            )
            .await?
        }
        "test_trigger_tool_change" | "test_trigger_prompt_change" => {
            let is_tool = request.name.contains("tool_change");
            for sink in listeners.0.lock().await.iter() {
                // The client of the stream can have disconnected.
                let _ = if is_tool {
                    sink.notify_tool_list_changed().await
                } else {
                    sink.notify_prompt_list_changed().await
                };
            }
            "announced".to_owned()
        }
        other => {
            return Err(ErrorData::invalid_params(
                format!("Unknown tool: {other}"),
                None,
            ));
        }
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

async fn logging(context: &Context) -> McpResult<String> {
    for message in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        log(context, LoggingLevel::Info, message).await?;
        sleep(PAUSE).await;
    }
    Ok("logged".to_owned())
}

async fn log(context: &Context, level: LoggingLevel, message: &str) -> McpResult<()> {
    let message = LoggingMessageNotificationParam::new(level, json!(message));
    context
        .peer
        .notify_logging_message(message)
        .await
        .map_err(internal)
}

/// Reports progress three times.
async fn progress(context: &Context) -> McpResult<String> {
    let Some(token) = context.meta.get_progress_token() else {
        return Ok("no progress token".to_owned());
    };
    for done in [0.0, 50.0, 100.0] {
        let step = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        context.peer.notify_progress(step).await.map_err(internal)?;
        sleep(PAUSE).await;
    }
    Ok("done".to_owned())
}

async fn sampling(context: &Context, prompt: &str) -> McpResult<String> {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    let result = context
        .peer
        .create_message(params)
        .await
        .map_err(internal)?;
    let text = result
        .message
        .content
        .first()
        .and_then(|content| content.as_text())
        .map(|text| text.text.clone());
    Ok(format!("LLM response: {}", text.unwrap_or_default()))
}

/// Asks the user for these properties, and returns the answer as text.
async fn elicitation(
    context: &Context,
    title: &str,
    message: &str,
    properties: Value,
    required: Value,
) -> McpResult<String> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.into(),
        requested_schema: model(schema)?,
    };
    let result = context
        .peer
        .create_elicitation(params)
        .await
        .map_err(internal)?;
    let action = serde_json::to_value(&result.action).map_err(internal)?;
    let content = serde_json::to_string(&result.content).map_err(internal)?;
    Ok(format!(
        "{title}: action={}, content={content}",
        action.as_str().unwrap_or_default()
    ))
}

/// Properties with defaults.
fn defaults() -> Value {
    json!({
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "description": "Status", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": true},
    })
}

/// Properties with choices, in every form.
fn enums() -> Value {
    let titled = |noun: &str| {
        let option = |(at, nth): (usize, &&str)| json!({"const": format!("value{}", at + 1), "title": format!("{nth} {noun}")});
        ["First", "Second", "Third"]
            .iter()
            .enumerate()
            .map(option)
            .collect::<Vec<_>>()
    };
    let options = ["option1", "option2", "option3"];
    let legacy = ["opt1", "opt2", "opt3"];
    json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": legacy, "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": titled("Choice")}},
    })
}

fn internal(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
