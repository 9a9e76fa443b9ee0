//! Servers on FastMCP, and the example servers of the Python SDK.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use portcullis_scenarios::free_address;
use url::Url;
use xtask::workspace;

use super::{
    Environment,
    site::{Site, Start},
};
use crate::{
    deployment::{ANNOUNCEMENT, USER},
    install,
    pages::password,
    program::Program,
    server::command,
};

/// The Python SDK's version and hashes. Its source archive has the examples.
const SDK: &str = "tests/idp/fastmcp/example.txt";
const EXAMPLE: &str = "mcp-2.3.0/examples/servers/simple-auth";
const SECRET: &str = "a-secret-of-tests";
const CLIENTS: &str = r#"
[[client]]
id = "fastmcp"
secret = { env = "IDP_SECRET" }
redirect_uris = ["http://127.0.0.1/auth/callback"]
"#;

/// FastMCP with an authorization server in its own process.
pub(super) async fn in_memory(environment: &Environment<'_>) -> anyhow::Result<Start> {
    let interpreter = match interpreter(environment).await {
        Ok(interpreter) => interpreter,
        Err(why) => return Ok(Start::Missing(format!("{why:#}"))),
    };
    let port = free_address()?.port();
    let server = fastmcp(&interpreter, environment, &["in-memory", &port.to_string()]).await?;
    let url = Url::parse(&format!("http://127.0.0.1:{port}/mcp"))?;
    Ok(Start::ready(Site::new(url).keeping(server)))
}

/// FastMCP in front of an authorization server without registration for MCP clients.
pub(super) async fn oauth_proxy(environment: &Environment<'_>) -> anyhow::Result<Start> {
    let interpreter = match interpreter(environment).await {
        Ok(interpreter) => interpreter,
        Err(why) => return Ok(Start::Missing(format!("{why:#}"))),
    };
    let port = free_address()?.port();
    let clients = environment.folder.join("clients.toml");
    let url = Url::parse(&format!("http://127.0.0.1:{port}/mcp"))?;
    fs::write(&clients, CLIENTS)?;

    // The user consents on FastMCP's page.
    let mut idp = command(environment.program);
    idp.args([
        "idp",
        "--listen",
        "127.0.0.1:0",
        "--auto-consent",
        "--no-registration",
    ]);
    idp.args(["--default-resource", url.as_str(), "--clients"])
        .arg(&clients)
        .env("IDP_SECRET", SECRET);
    let mut idp = Program::start("idp", &mut idp, environment.folder)?;
    let issuer = idp
        .find_line(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned))
        .await?;
    let server = fastmcp(
        &interpreter,
        environment,
        &["proxy", &port.to_string(), &issuer, "fastmcp", SECRET],
    )
    .await?;
    Ok(Start::ready(Site::new(url).keeping((idp, server))))
}

/// Returns the authorization server and the resource server of `examples/servers/simple-auth`,
/// which only the source archive has.
pub(super) async fn example(environment: &Environment<'_>) -> anyhow::Result<Start> {
    let (interpreter, example) = match installed_example(environment).await {
        Ok(installed) => installed,
        Err(why) => return Ok(Start::Missing(format!("{why:#}"))),
    };
    let port = free_address()?.port().to_string();
    let authorization_port = free_address()?.port().to_string();
    let module = |name: &str, port: &str| {
        let mut command = Command::new(&interpreter);
        command
            .args(["-m", &format!("mcp_simple_auth.{name}"), "--port", port])
            .current_dir(&example);
        command
            .env("PYTHONUNBUFFERED", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let mut authorization = module("auth_server", &authorization_port);
    authorization
        .env("MCP_DEMO_USERNAME", USER)
        .env("MCP_DEMO_PASSWORD", password(USER));
    let mut resource = module("server", &port);
    resource.args([
        "--oauth-strict",
        "--auth-server",
        &format!("http://localhost:{authorization_port}"),
    ]);
    let authorization = uvicorn("authorization-server", authorization, environment.folder).await?;
    let resource = uvicorn("resource-server", resource, environment.folder).await?;
    let url = Url::parse(&format!("http://localhost:{port}/mcp"))?;
    Ok(Start::ready(
        Site::new(url).keeping((authorization, resource)),
    ))
}

/// Downloads the example of the SDK, and returns the interpreter and the folder of the example.
async fn installed_example(environment: &Environment<'_>) -> anyhow::Result<(PathBuf, PathBuf)> {
    let interpreter = interpreter(environment).await?;
    let folder = packages(environment).join("examples");
    let example = folder.join(EXAMPLE);
    if !example.exists() {
        fs::create_dir_all(&folder)?;
        let mut download = install::pip(&interpreter, "download");
        download.args([
            "--no-deps",
            "--no-binary",
            ":all:",
            "--require-hashes",
            "--requirement",
        ]);
        download
            .arg(workspace::root().join(SDK))
            .arg("--dest")
            .arg(&folder);
        install::run("pip-download", download, environment.folder).await?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf")
            .arg(folder.join("mcp-2.3.0.tar.gz"))
            .arg("-C")
            .arg(&folder)
            .arg(EXAMPLE);
        install::run("tar", tar, environment.folder).await?;
    }
    Ok((interpreter, example))
}

/// Returns an interpreter with the packages of `tests/idp/fastmcp/requirements.txt`.
async fn interpreter(environment: &Environment<'_>) -> anyhow::Result<PathBuf> {
    let requirements = workspace::root().join("tests/idp/fastmcp/requirements.txt");
    install::python(&packages(environment), &requirements, environment.folder).await
}

fn packages(environment: &Environment<'_>) -> PathBuf {
    environment.target.join("sign-in/python")
}

/// Starts `tests/idp/fastmcp/server.py`.
async fn fastmcp(
    interpreter: &Path,
    environment: &Environment<'_>,
    arguments: &[&str],
) -> anyhow::Result<Program> {
    let mut server = Command::new(interpreter);
    server
        .arg(workspace::root().join("tests/idp/fastmcp/server.py"))
        .args(arguments);
    server
        .env("FASTMCP_CHECK_FOR_UPDATES", "off")
        .env("PYTHONUNBUFFERED", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    uvicorn("fastmcp", server, environment.folder).await
}

/// Starts a server and waits until it listens.
async fn uvicorn(name: &str, mut command: Command, folder: &Path) -> anyhow::Result<Program> {
    let mut program = Program::start(name, &mut command, folder)?;
    program
        .find_line(|line| line.contains("Uvicorn running on").then_some(()))
        .await?;
    Ok(program)
}
