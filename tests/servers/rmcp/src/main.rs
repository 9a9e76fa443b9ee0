//! An MCP server on rmcp with the tools, resources and prompts of the public conformance suite, for
//! `cargo xtask conformance server`.
//!
//! It listens on the port in the variable `PORT`, and supports every revision that rmcp supports.
#![allow(clippy::print_stderr, reason = "a program for tests")]
#![allow(
    deprecated,
    reason = "the revisions until 2025-11-25 have logging, sampling and roots"
)]

mod catalogue;
mod fixed;
mod inputs;
mod interactive;
mod tasks;

use std::{env, sync::Arc};

use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
        CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
        GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
        UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
    task_manager::TaskManager,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tasks::Started;
use tokio::net::TcpListener;

type McpResult<T> = Result<T, ErrorData>;
type Context = RequestContext<RoleServer>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let port: u16 = env::var("PORT").context("PORT is not set")?.parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let server = EverythingServer {
        listeners: interactive::Listeners::default(),
        tasks: TaskManager::new(),
    };
    let sessions = Arc::<LocalSessionManager>::default();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            if let Err(error) = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await
            {
                eprintln!("{error}");
            }
        });
    }
}

/// The server. It stores only the open streams and the running tasks.
#[derive(Clone)]
struct EverythingServer {
    listeners: interactive::Listeners,
    tasks: TaskManager,
}

impl ServerHandler for EverythingServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .enable_completions()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("everything", "1.0.0"))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        catalogue::tools()
            .ok()?
            .tools
            .into_iter()
            .find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> McpResult<ListToolsResult> {
        catalogue::tools()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> McpResult<CallToolResponse> {
        if let Some(result) = fixed::tool(&request)? {
            return Ok(result.into());
        }
        if let Some(response) = inputs::tool(&request, &context)? {
            return Ok(response);
        }
        match tasks::tool(&request, &context, &self.tasks)? {
            Some(Started::Task(response)) => Ok(response),
            Some(Started::Job(job)) => job.run_without_task().await,
            None => interactive::tool(&request, &context, &self.listeners).await,
        }
    }

    async fn get_task(&self, request: GetTaskParams, _: Context) -> McpResult<GetTaskResult> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> McpResult<()> {
        self.tasks
            .update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> McpResult<()> {
        self.tasks.cancel_task(&request.task_id)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> McpResult<ListResourcesResult> {
        catalogue::resources()
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> McpResult<ListResourceTemplatesResult> {
        catalogue::templates()
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> McpResult<ReadResourceResponse> {
        Ok(fixed::resource(&request.uri)?.into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> McpResult<()> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> McpResult<()> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> McpResult<()> {
        self.listeners.keep(context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> McpResult<ListPromptsResult> {
        catalogue::prompts()
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> McpResult<GetPromptResponse> {
        inputs::prompt(&request)
    }

    async fn complete(&self, _: CompleteRequestParams, _: Context) -> McpResult<CompleteResult> {
        let values = CompletionInfo::new(Vec::new())
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(values))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> McpResult<()> {
        Ok(())
    }
}

/// Converts the JSON of a complete result.
fn result<T: serde::de::DeserializeOwned>(mut json: serde_json::Value) -> McpResult<T> {
    json["resultType"] = "complete".into();
    model(json)
}

/// Converts the JSON of a protocol type.
fn model<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> McpResult<T> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
