//! Tools and a prompt of 2026-07-28 that require input and are called again with it.

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequests,
        InputRequiredResult, InputResponses, ListRootsRequest, RequestStateCodec, SamplingMessage,
    },
};
use serde_json::{Map, Value, json};

use crate::{Context, McpResult, fixed, model, result};

/// Seals the request state. This server protects nothing, so the key is not secret.
const KEY: &[u8] = b"everything-server-request-state-key";

/// Calls a tool that requires input. Returns `None` for other tools.
pub(crate) fn tool(
    request: &CallToolRequestParams,
    context: &Context,
) -> McpResult<Option<CallToolResponse>> {
    let Some(name) = request.name.strip_prefix("test_input_required_result_") else {
        return capability_tool(&request.name, context);
    };
    let responses = request.input_responses.as_ref();
    let response_object = |key: &str| response_object(responses, key);
    let name_request = ("user_name", ask("What is your name?", "name", "string")?);
    let roots = list_roots();
    let response = match name {
        "elicitation" => match response_object("user_name") {
            Some(response) => done(&format!("Hello, {}!", text_of(response, "name"))),
            None => required([name_request], None),
        },
        "sampling" => match response_object("capital_question") {
            Some(response) => done(&format!("Sampling response: {}", text_of(response, "text"))),
            None => required(
                [("capital_question", sample("What is the capital of France?"))],
                None,
            ),
        },
        "list_roots" => match response_object("client_roots") {
            Some(response) => done(&format!("Client roots: {}", Value::from(response.clone()))),
            None => required([("client_roots", roots)], None),
        },
        "request_state" | "tampered_state" => match (state(request)?, response_object("confirm")) {
            (Some(_), Some(_)) => done("state-ok: the state is the one that was sent"),
            _ => required(
                [("confirm", ask("Please confirm", "ok", "boolean")?)],
                Some(seal(0)?),
            ),
        },
        "multiple_inputs" => {
            let has_all = ["user_name", "greeting", "client_roots"]
                .iter()
                .all(|key| response_object(key).is_some());
            if state(request)?.is_some() && has_all {
                done("all inputs were received")
            } else {
                let greeting = ("greeting", sample("Generate a greeting"));
                required(
                    [name_request, greeting, ("client_roots", roots)],
                    Some(seal(0)?),
                )
            }
        }
        "multi_round" => match state(request)? {
            None => required(
                [(
                    "step1",
                    ask("Step 1: What is your name?", "name", "string")?,
                )],
                Some(seal(1)?),
            ),
            Some(1) => {
                let step = ask("Step 2: What is your favorite color?", "color", "string")?;
                required([("step2", step)], Some(seal(2)?))
            }
            Some(_) => done("both rounds are done"),
        },
        "capabilities" if responses.is_none() => {
            let declared = context.meta.client_capabilities().unwrap_or_default();
            let mut requests = Vec::new();
            requests.extend(declared.elicitation.is_some().then_some(name_request));
            requests.extend(
                declared
                    .sampling
                    .is_some()
                    .then(|| ("greeting", sample("Generate a greeting"))),
            );
            requests.extend(declared.roots.is_some().then_some(("client_roots", roots)));
            if requests.is_empty() {
                done("the client supports no input")
            } else {
                required(requests, None)
            }
        }
        "capabilities" => done("the inputs were received"),
        _ => return Ok(None),
    };
    Ok(Some(response))
}

/// Calls a tool that checks the client's capabilities. Returns `None` for other tools.
fn capability_tool(name: &str, context: &Context) -> McpResult<Option<CallToolResponse>> {
    match name {
        "test_missing_capability"
            if context
                .meta
                .client_capabilities()
                .unwrap_or_default()
                .sampling
                .is_none() =>
        {
            let required = ClientCapabilities::builder().enable_sampling().build();
            Err(ErrorData::missing_required_client_capability(required))
        }
        "test_missing_capability" => Ok(Some(done("the capability is declared"))),
        "test_streaming_elicitation" => ask_for_name().map(Some),
        _ => Ok(None),
    }
}

/// Returns a prompt, one of which requires input.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> McpResult<GetPromptResponse> {
    if request.name != "test_input_required_result_prompt" {
        return Ok(fixed::prompt(request)?.into());
    }
    match response_object(request.input_responses.as_ref(), "user_context") {
        Some(response) => {
            let content = fixed::text(&format!(
                "Use the following context: {}",
                text_of(response, "context")
            ));
            Ok(result::<GetPromptResult>(
                json!({"messages": [{"role": "user", "content": content}]}),
            )?
            .into())
        }
        None => {
            let requests = [(
                "user_context",
                ask("What context should the prompt use?", "context", "string")?,
            )];
            Ok(input_required(requests, None).into())
        }
    }
}

fn done(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn required<'a>(
    requests: impl IntoIterator<Item = (&'a str, InputRequest)>,
    state: Option<String>,
) -> CallToolResponse {
    input_required(requests, state).into()
}

fn input_required<'a>(
    requests: impl IntoIterator<Item = (&'a str, InputRequest)>,
    state: Option<String>,
) -> InputRequiredResult {
    let requests: InputRequests = requests
        .into_iter()
        .map(|(key, request)| (key.into(), request))
        .collect();
    InputRequiredResult::new(Some(requests), state)
}

/// Returns the name in the client's response, if any.
pub(crate) fn user_name(request: &CallToolRequestParams) -> Option<String> {
    response_object(request.input_responses.as_ref(), "user_name")
        .map(|response| text_of(response, "name"))
}

pub(crate) fn ask_for_name() -> McpResult<CallToolResponse> {
    Ok(required(
        [("user_name", ask("What is your name?", "name", "string")?)],
        None,
    ))
}

/// Returns a request for one value of the user.
pub(crate) fn ask(message: &str, member: &str, json_type: &str) -> McpResult<InputRequest> {
    let schema = json!({"type": "object", "properties": {member: {"type": json_type}}, "required": [member]});
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.into(),
        requested_schema: model(schema)?,
    };
    Ok(InputRequest::Elicitation(ElicitRequest::new(params)))
}

fn sample(prompt: &str) -> InputRequest {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

fn list_roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// Returns a response that is an object. Other responses are requested again.
fn response_object<'a>(
    responses: Option<&'a InputResponses>,
    key: &str,
) -> Option<&'a Map<String, Value>> {
    responses?.get(key)?.as_object()
}

fn text_of(response: &Map<String, Value>, member: &str) -> String {
    response
        .get("content")
        .and_then(|content| content[member].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Returns the sealed round of a request, if any.
fn state(request: &CallToolRequestParams) -> McpResult<Option<u64>> {
    let Some(sealed) = request.request_state.as_deref() else {
        return Ok(None);
    };
    let opened: Result<u64, _> = codec().open_json(sealed);
    opened.map(Some).map_err(|_| {
        ErrorData::invalid_params("the request state is not the one that was sent", None)
    })
}

fn seal(round: u64) -> McpResult<String> {
    codec()
        .seal_json(&round)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn codec() -> RequestStateCodec {
    RequestStateCodec::new_unchecked(KEY)
}
