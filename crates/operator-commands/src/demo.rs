//! `portcullis demo`: a development authorization server and a protected MCP server.

mod broker;
mod welcome;

use std::net::SocketAddr;

use anyhow::Context as _;
use portcullis_config::{Config, plan::Plan};
use portcullis_devidp::{DevIdp, DevIdpSettings};
use portcullis_metadata::Issuer;
use portcullis_serve::{Listeners, Program, Server, Signals, bind};
use portcullis_telemetry::{AccessLog, LogFormat};
use portcullis_terminal::print;

use self::{broker::Application, welcome::Welcome};
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
        let application = match arguments.broker {
            true => Some(Application::new(address)?),
            false => None,
        };
        let mut settings = DevIdpSettings {
            listen: arguments.idp_listen,
            auto_consent: arguments.auto_consent,
            ..DevIdpSettings::default()
        };
        if let Some(application) = &application {
            application.register(&mut settings);
        }
        let idp = DevIdp::bind(settings).await.context("--idp-listen")?;
        let config = configuration(address, idp.issuer(), application.as_ref())?;
        let plan = Plan::new(&config)
            .map_err(|errors| anyhow::anyhow!("the demo cannot run: {errors:?}"))?;
        print(Welcome {
            address,
            issuer: idp.issuer(),
            has_broker: arguments.broker,
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

/// Returns the configuration. With an application, users sign in with it at the issuer, which is
/// then an identity provider.
fn configuration(
    address: SocketAddr,
    issuer: &Issuer,
    application: Option<&Application>,
) -> anyhow::Result<Config> {
    let tokens = match application {
        Some(_) => broker::table(issuer),
        None => format!("[[issuer]]\nissuer = \"{issuer}\""),
    };
    let text = format!(
        r#"
        listen = "{address}"
        state_dir = "off"
        base_url = "http://{address}"

        {tokens}

        [[resource]]
        endpoint = "{ENDPOINT}"
        resource_name = "Portcullis demo"
        scopes_supported = ["{SCOPE}"]
        required_scopes = ["{SCOPE}"]
        upstream = "demo"
        "#
    );
    let mut config = portcullis_config::from_text(&text)?;
    if let Some(application) = application {
        application.configure(&mut config);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::Product;
    use portcullis_doctor::{Finding, Verdict};

    use super::*;
    use crate::online_check;

    /// Both demos are valid, and need neither a file nor a variable.
    #[tokio::test]
    async fn the_configurations_are_valid() {
        let address: SocketAddr = ([127, 0, 0, 1], 3000).into();
        for with_broker in [false, true] {
            let application = with_broker.then(|| Application::new(address).unwrap());
            let mut settings = DevIdpSettings::default();
            if let Some(application) = &application {
                application.register(&mut settings);
            }
            let idp = DevIdp::bind(settings).await.unwrap();
            let config = configuration(address, idp.issuer(), application.as_ref()).unwrap();
            let plan = Plan::new(&config).unwrap();
            assert_eq!(plan.issuers.is_empty(), with_broker);
            assert!(plan.state_dir.is_none());
            let redirect_uris = plan.broker.iter().flat_map(|broker| {
                let providers = &broker.settings.providers;
                providers
                    .iter()
                    .map(|it| broker.settings.redirect_uri(&it.settings.name))
            });
            let redirect_uris: Vec<_> = redirect_uris.collect();
            let expected = application.map(|application| application.redirect_uri().to_owned());
            assert_eq!(redirect_uris, Vec::from_iter(expected));
        }
    }

    /// The development server accepts the application of the broker.
    #[tokio::test]
    async fn the_application_is_accepted() {
        let address: SocketAddr = ([127, 0, 0, 1], 3000).into();
        let application = Application::new(address).unwrap();
        let mut settings = DevIdpSettings::default();
        application.register(&mut settings);
        let idp = DevIdp::bind(settings).await.unwrap();
        let config = configuration(address, idp.issuer(), Some(&application)).unwrap();
        tokio::spawn(idp.serve(std::future::pending()));
        let plan = Plan::new(&config).unwrap();
        let providers = [online_check::Part::Providers];
        let report = online_check::examine_and_print(
            &providers,
            &plan,
            &config.base_url,
            Product::default(),
            false,
        );
        let report = report.await.unwrap();
        assert_eq!(report.first_problem(), None, "{report:#?}");
        let is_accepted = |finding: &Finding| {
            finding.rule.id == "provider.application" && finding.verdict == Verdict::Met
        };
        assert!(report.findings().any(is_accepted), "{report:#?}");
    }
}
