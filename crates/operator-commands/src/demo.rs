//! `portcullis demo`: a development authorization server and a protected MCP server.

use std::{fmt, net::SocketAddr};

use anyhow::Context as _;
use owo_colors::{OwoColorize as _, Stream};
use portcullis_config::plan::Plan;
use portcullis_devidp::{DevIdp, DevIdpSettings};
use portcullis_metadata::Issuer;
use portcullis_serve::{Listeners, Program, Server, Signals, bind};
use portcullis_telemetry::{AccessLog, LogFormat};
use portcullis_terminal::print;

use crate::cli;

const ENDPOINT: &str = "/mcp";
const SCOPE: &str = "mcp:tools";

pub(crate) fn run(
    arguments: &cli::Demo,
    program: Program,
    format: LogFormat,
) -> anyhow::Result<()> {
    anyhow::ensure!(
        arguments.listen.ip().is_loopback(),
        "the demo listens on loopback only, and --listen is {}; use 127.0.0.1",
        arguments.listen
    );
    crate::control_runtime()?.block_on(async {
        let signals = Signals::handle()?;
        let listener = bind(arguments.listen, "--listen")?;
        let address = listener.local_addr()?;
        let settings = DevIdpSettings {
            listen: arguments.idp_listen,
            auto_consent: arguments.auto_consent,
            ..DevIdpSettings::default()
        };
        let idp = DevIdp::bind(settings).await.context("--idp-listen")?;
        let plan = Plan::new(&portcullis_config::from_text(&configuration(
            address,
            idp.issuer(),
        ))?)
        .map_err(|errors| anyhow::anyhow!("the demo cannot run: {errors:?}"))?;
        print(Welcome {
            address,
            issuer: idp.issuer(),
            auto_consent: arguments.auto_consent,
        })?;

        let mut stop = signals.shutdown.clone();
        let idp = tokio::spawn(idp.serve(async move {
            // An error means that the sender is gone, which also ends the server.
            let _ = stop.wait_for(|shutdown| *shutdown).await;
        }));
        let server = Server::new(plan)
            .program(program)
            .listeners(Listeners {
                clients: listener,
                admin: None,
            })
            .access_log(AccessLog::start(format)?);
        server.serve(signals).await?;
        idp.abort();
        Ok(())
    })
}

fn configuration(address: SocketAddr, issuer: &Issuer) -> String {
    format!(
        r#"
        listen = "{address}"
        state_dir = "off"
        base_url = "http://{address}"

        [[issuer]]
        issuer = "{issuer}"

        [[resource]]
        endpoint = "{ENDPOINT}"
        resource_name = "Portcullis demo"
        scopes_supported = ["{SCOPE}"]
        required_scopes = ["{SCOPE}"]
        upstream = "demo"
        "#
    )
}

struct Welcome<'a> {
    address: SocketAddr,
    issuer: &'a Issuer,
    auto_consent: bool,
}

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            issuer,
            auto_consent,
        } = self;
        let bold = |text: &'static str| {
            text.if_supports_color(Stream::Stdout, |text| text.bold())
                .to_string()
        };
        let consent = if *auto_consent { " --auto-consent" } else { "" };
        writeln!(
            f,
            "{}              http://{address}{ENDPOINT}",
            bold("protected MCP server")
        )?;
        writeln!(f, "{}  {issuer}", bold("development authorization server"))?;
        writeln!(f)?;
        writeln!(
            f,
            "{}",
            bold("Without a token: 401, and a challenge with the URL of the metadata")
        )?;
        writeln!(f, "  curl -i -X POST http://{address}{ENDPOINT}\n")?;
        writeln!(f, "{}", bold("The metadata at that URL"))?;
        writeln!(
            f,
            "  curl http://{address}/.well-known/oauth-protected-resource{ENDPOINT}\n"
        )?;
        writeln!(
            f,
            "{}",
            bold("With a token: discover, register, authorize, call")
        )?;
        writeln!(
            f,
            "  {} call{consent} http://{address}{ENDPOINT} tools/call '{{\"name\":\"add\",\"arguments\":{{\"a\":2,\"b\":3}}}}'\n",
            program()
        )?;
        write!(f, "Ctrl-C ends it.")
    }
}

/// How to start this program again, for the printed commands.
fn program() -> String {
    std::env::args()
        .next()
        .unwrap_or_else(|| "portcullis".to_owned())
}
