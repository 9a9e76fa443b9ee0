//! Tools that run as tasks (the tasks extension of 2026-07-28).

use std::time::Duration;

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        CreateTaskResult,
    },
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
};
use serde_json::Value;
use tokio::time::sleep;

use crate::{Context, McpResult, inputs};

/// The tools that can run as tasks, and whether they must.
const TOOLS: [(&str, bool); 6] = [
    ("slow_compute", false),
    ("protocol_error_job", false),
    ("failing_job", true),
    ("confirm_delete", true),
    ("multi_input", true),
    ("test_tool_with_task", true),
];

/// A started call.
pub(crate) enum Started {
    Task(CallToolResponse),
    /// The client does not support tasks, so the call waits for the result.
    Job(Job),
}

/// Calls a tool that can run as a task. Returns `None` for other tools.
pub(crate) fn tool(
    request: &CallToolRequestParams,
    context: &Context,
    tasks: &TaskManager,
) -> McpResult<Option<Started>> {
    let Some((name, needs_task)) = TOOLS.into_iter().find(|(name, _)| *name == request.name) else {
        return Ok(None);
    };
    let has_tasks = context
        .client_capabilities()
        .is_some_and(|declared| declared.supports_tasks());
    if needs_task && !has_tasks {
        let required = ClientCapabilities::builder().enable_tasks().build();
        return Err(ErrorData::missing_required_client_capability(required));
    }
    if name == "test_tool_with_task" && inputs::user_name(request).is_none() {
        return Ok(Some(Started::Task(inputs::ask_for_name()?)));
    }
    let job = Job::new(name, request);
    if !has_tasks {
        return Ok(Some(Started::Job(job)));
    }
    let task = tasks.spawn(TaskOptions::default(), move |task| {
        Box::pin(async move {
            tokio::select! {
                () = task.cancelled() => Err(TaskExit::Cancelled),
                result = job.run(&task) => result,
            }
        })
    });
    Ok(Some(Started::Task(CreateTaskResult::new(task).into())))
}

/// The work of one call.
pub(crate) struct Job {
    name: &'static str,
    /// The argument that the tool repeats in its result.
    argument: String,
    seconds: f64,
}

impl Job {
    /// Reads the arguments of a call.
    fn new(name: &'static str, request: &CallToolRequestParams) -> Self {
        let argument = |name: &str| {
            request
                .arguments
                .as_ref()
                .and_then(|arguments| arguments.get(name))
        };
        let text = |name: &str| argument(name).and_then(Value::as_str).map(str::to_owned);
        let repeated = text("label")
            .or_else(|| text("filename"))
            .or_else(|| inputs::user_name(request));
        Self {
            name,
            argument: repeated.unwrap_or_default(),
            seconds: argument("seconds").and_then(Value::as_f64).unwrap_or(1.0),
        }
    }

    pub(crate) async fn run_without_task(self) -> McpResult<CallToolResponse> {
        self.finish().await.map(Into::into)
    }

    async fn run(self, task: &TaskContext) -> Result<CallToolResult, TaskExit> {
        match self.name {
            "confirm_delete" => {
                let request =
                    inputs::ask(&format!("Delete {}?", self.argument), "confirm", "boolean");
                let response = task
                    .request_input("confirm", request.map_err(TaskExit::Error)?)
                    .await?;
                Ok(done(format!(
                    "{}: confirmed {}",
                    self.argument, response["content"]["confirm"]
                )))
            }
            "multi_input" => {
                let ask =
                    || inputs::ask("Provide a value", "value", "string").map_err(TaskExit::Error);
                let first = task.request_input("input-a", ask()?);
                let second = task.request_input("input-b", ask()?);
                let (first, second) = tokio::join!(first, second);
                Ok(done(format!(
                    "{} and {}",
                    first?["content"]["value"], second?["content"]["value"]
                )))
            }
            _ => self.finish().await.map_err(TaskExit::Error),
        }
    }

    /// Runs the part that needs no input.
    async fn finish(self) -> McpResult<CallToolResult> {
        let seconds = if self.name == "slow_compute" {
            self.seconds.clamp(0.0, 60.0)
        } else {
            0.5
        };
        sleep(Duration::from_secs_f64(seconds)).await;
        match self.name {
            "failing_job" => Ok(CallToolResult::error(vec![ContentBlock::text(
                "the job failed",
            )])),
            "protocol_error_job" => Err(ErrorData::internal_error("the job failed", None)),
            _ => Ok(done(format!("done: {}", self.argument))),
        }
    }
}

fn done(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
