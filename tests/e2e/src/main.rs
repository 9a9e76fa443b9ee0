//! End-to-end flows of the real programs (`cargo xtask e2e`), and the public MCP conformance suite
//! (`cargo xtask conformance`).
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod authorization;
mod broker;
mod broker_clients;
mod canary;
mod cell;
mod chromium;
mod client;
mod client_flow;
mod conformance;
mod deployment;
mod devidp;
mod discovery;
mod expect;
mod flows;
mod guides;
mod install;
mod keycloak;
mod library_flow;
mod metrics;
mod oidc_provider;
mod output;
mod pages;
mod program;
mod progress;
mod readers;
mod recorder;
mod replicas;
mod request;
mod restarts;
mod server;
mod session;
mod sign_in;
mod test_client;
mod test_user;

use clap::{Parser, Subcommand};
use portcullis_scenarios::block_on;
use url::Url;

/// End-to-end runs of the Portcullis workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    run: Run,
}

#[derive(Subcommand)]
enum Run {
    /// Sign in through the real programs, from the first 401 to the end of a session.
    E2e(flows::Arguments),
    /// Run the public MCP conformance suite.
    Conformance {
        #[command(subcommand)]
        part: conformance::Part,
    },
    /// Visit a URL as the browser of a guide's reader does.
    #[command(hide = true)]
    Browser {
        /// The URL.
        url: Url,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().run {
        Run::E2e(arguments) => flows::run(&arguments),
        Run::Conformance { part } => conformance::run(&part),
        Run::Browser { url } => block_on(guides::browser::visit(&url)),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    /// clap checks most mistakes only when a command is built.
    #[test]
    fn the_command_line_is_sound() {
        super::Arguments::command().debug_assert();
    }

    /// A run that takes the place of another one is not silently dropped.
    #[test]
    fn only_one_run_is_selected() {
        let parses = |options: &[&str]| {
            super::Arguments::try_parse_from([&["xtask", "e2e"], options].concat()).is_ok()
        };
        let runs = [
            "--readers",
            "--sign-in",
            "--restarts",
            "--broker",
            "--broker-clients",
            "--guides",
            "--replicas",
            "--metrics",
        ];
        for run in runs {
            assert!(parses(&[run]), "{run}");
            assert!(!parses(&[run, "--idp", "devidp"]), "{run}");
            let has_browser = run == "--broker";
            assert_eq!(parses(&[run, "--browser"]), has_browser, "{run}");
            for other in runs.into_iter().filter(|other| *other != run) {
                assert!(!parses(&[run, other]), "{run} {other}");
            }
        }
        assert!(parses(&["--broker", "--provider", "like-entra"]));
        assert!(!parses(&["--provider", "like-entra"]));
        assert!(parses(&["--guides", "--guide", "nginx"]));
        assert!(!parses(&["--guide", "nginx"]));
    }
}
