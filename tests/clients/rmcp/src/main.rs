//! Signs in at a protected MCP server, and calls a tool of it for each line of the standard input.
//!
//! The argument is the URL. A line is the name of a tool, which gets the arguments `a` = 1 and `b`
//! = 2. The program prints `answer TEXT` or `error TEXT` for each line. It opens the browser with
//! the command of BROWSER.

mod browser;

use std::{env, sync::Arc};

use anyhow::Context as _;
use rmcp::{
    RoleClient, ServiceError, ServiceExt as _,
    model::{CallToolRequestParams, ClientConfig},
    service::RunningService,
    transport::{
        AuthClient, AuthorizationManager, DynamicTransportError, StreamableHttpClientTransport,
        auth::{AuthorizationCallback, AuthorizationRequest, OAuthState},
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    sync::Mutex,
};

use self::browser::Browser;

/// Why a call was rejected, and what the user can do about it.
enum Remedy {
    SignIn,
    StepUp { scope: String },
    None,
}

struct Client {
    service: RunningService<RoleClient, ClientConfig>,
    manager: Arc<Mutex<AuthorizationManager>>,
    browser: Browser,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let url = env::args().nth(1).context("the argument is the URL")?;
    let client = Client::connect(&url).await?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(tool) = lines.next_line().await? {
        match client.call_with_consent(tool).await {
            Ok(text) => println!("answer {text}"),
            Err(error) => println!("error {}", format!("{error:#}").replace('\n', " ")),
        }
    }
    Ok(())
}

impl Client {
    /// Signs in and opens a session.
    async fn connect(url: &str) -> anyhow::Result<Self> {
        let browser = Browser::new().await?;
        let mut state = OAuthState::new(url, None).await?;
        let request = AuthorizationRequest::new(browser.redirect_uri())
            .with_client_name("rmcp")
            .with_initial_scope_selection();
        state.start_authorization(request).await?;
        let redirect = browser.open(&state.get_authorization_url().await?).await?;
        state.handle_callback_url(&redirect).await?;
        let manager = state
            .into_authorization_manager()
            .context("it is authorized")?;
        let client = AuthClient::new(reqwest::Client::new(), manager);
        let manager = Arc::clone(&client.auth_manager);
        let transport = StreamableHttpClientTransport::with_client(
            client,
            StreamableHttpClientTransportConfig::with_uri(url),
        );
        Ok(Self {
            service: ClientConfig::default().serve(transport).await?,
            manager,
            browser,
        })
    }

    /// Calls a tool, and once more if the user could help.
    async fn call_with_consent(&self, tool: String) -> anyhow::Result<String> {
        let error = match self.call(tool.clone()).await {
            Ok(text) => return Ok(text),
            Err(error) => error,
        };
        let authorization = {
            let manager = self.manager.lock().await;
            match remedy(&error) {
                Remedy::SignIn => {
                    let scopes = manager.get_current_scopes().await;
                    let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
                    manager.get_authorization_url(&scopes).await?
                }
                Remedy::StepUp { scope } => manager.request_scope_upgrade(&scope).await?,
                Remedy::None => return Err(error.into()),
            }
        };
        let redirect = self.browser.open(&authorization).await?;
        let callback = AuthorizationCallback::from_redirect_url(&redirect)?;
        self.manager
            .lock()
            .await
            .exchange_code_for_token_with_issuer(
                &callback.code,
                &callback.csrf_token,
                callback.issuer.as_deref(),
            )
            .await?;
        Ok(self.call(tool).await?)
    }

    async fn call(&self, tool: String) -> Result<String, ServiceError> {
        let arguments = json!({ "a": 1, "b": 2 });
        let mut request = CallToolRequestParams::new(tool);
        request.arguments = arguments.as_object().cloned();
        let result = self.service.call_tool(request).await?;
        let text = result.content.first().and_then(|content| content.as_text());
        Ok(text.map(|text| text.text.clone()).unwrap_or_default())
    }
}

fn remedy(error: &ServiceError) -> Remedy {
    let ServiceError::TransportSend(DynamicTransportError { error, .. }) = error else {
        return Remedy::None;
    };
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::AuthRequired(_)) => Remedy::SignIn,
        Some(StreamableHttpError::InsufficientScope(error)) => Remedy::StepUp {
            scope: error.get_required_scope().unwrap_or_default().to_owned(),
        },
        _ => Remedy::None,
    }
}
