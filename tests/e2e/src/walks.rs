//! `cargo xtask e2e`: the real program and a real authorization server, walked through from the first 401 to the end
//! of a session.
//!
//! Everything runs on loopback. What the programs write is kept in `target/e2e`.

mod authorization;
mod canary;
mod chromium;
mod client;
mod client_walk;
mod deployment;
mod devidp;
mod discovery;
mod expect;
mod install;
mod keycloak;
mod metrics;
mod oidc_provider;
mod output;
mod pages;
mod person;
pub(crate) mod program;
mod progress;
mod readers;
mod request;
pub(crate) mod server;
mod session;
mod sign_in;
mod visitor;
mod walk;
mod wire;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use chromium::Chromium;
use deployment::USER;
use person::Person;
use portcullis_scenarios::block_on;
use progress::Progress;
use wire::Wire;
use xtask::{built, checklist::Unit, workspace};

/// Against what to walk.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The authorization server.
    #[arg(long, value_enum, default_value_t)]
    idp: IdentityProvider,
    /// How many seconds Keycloak may take until it is ready, each time that it starts.
    #[arg(long, value_name = "SECONDS", default_value_t = READY_WITHIN)]
    ready_within: u64,
    /// Consent with a headless Chromium that clicks through the pages, in place of filling in their forms. Pictures of
    /// all pages are kept in the target folder. Needs Chromium and Node.js 20; without Chromium, forms are filled in.
    #[arg(long)]
    browser: bool,
    /// Walk through this scenario with Keycloak only; may be given several times.
    #[arg(long, value_enum, value_name = "SCENARIO")]
    only: Vec<keycloak::Scenario>,
    /// Send one corpus of messages through the gateway to real readers of JSON and MCP instead, and compare what they
    /// see with what was checked and audited. Needs Node.js, Python and Go; a reader without them is skipped.
    #[arg(long, conflicts_with_all = ["idp", "browser", "only"])]
    readers: bool,
    #[command(flatten)]
    reader_options: readers::Options,
    /// Run `login` and `connect` at every authorization server and in every network that there is a test of, and print one
    /// table. Needs Node.js, Python and Java; a server without them is skipped. The first run downloads 400 MB.
    #[arg(long, conflicts_with_all = ["idp", "browser", "only", "readers"])]
    sign_in: bool,
    #[command(flatten)]
    sign_in_options: sign_in::Options,
    /// Run every query of the dashboard and of the alerts in `deploy` against a real Prometheus instead. Needs Prometheus; without it,
    /// the run is reported as skipped.
    #[arg(long, conflicts_with_all = ["idp", "browser", "only", "readers", "sign_in"])]
    metrics: bool,
}

/// On a machine with two cores that does other things, too, Keycloak takes about 60 s at its very first start.
const READY_WITHIN: u64 = 180;

#[derive(Clone, Copy, Default, ValueEnum)]
enum IdentityProvider {
    /// The development authorization server of this workspace. Takes seconds and needs nothing.
    #[default]
    Devidp,
    /// npm's oidc-provider 9.13.3. Takes a minute and needs npm; the first run downloads 40 MB, Node.js 22 among them.
    OidcProvider,
    /// Keycloak 26.7.3. Takes some four minutes and 1 GB of memory, and needs Java 17 or newer, `tar`, and
    /// 400 MB in the target folder; the first run downloads 176 MB from Maven Central.
    Keycloak,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = built::build(&["--package=portcullis", "--bin=portcullis", "--locked"])?.program("portcullis")?;
    let target = workspace::metadata()?.target_directory;
    let folder = fresh_folder(&target)?;
    if arguments.sign_in {
        let ready_within = Duration::from_secs(arguments.ready_within);
        let ground = sign_in::Ground { program: &program, target: &target, folder: &folder, ready_within };
        let outcome = block_on(sign_in::whole(&ground, &arguments.sign_in_options));
        return outcome.with_context(|| format!("what the programs wrote is in {}", folder.display()));
    }
    let (mut progress, outcome);
    match arguments.idp {
        _ if arguments.metrics => {
            progress = Progress::new(Unit::Seconds, metrics::LIMIT);
            outcome = block_on(metrics::whole(&folder, &mut progress));
        }
        _ if arguments.readers => {
            progress = Progress::new(Unit::Seconds, readers::LIMIT);
            let whole = readers::whole(&program, &target, &folder, arguments.reader_options, &mut progress);
            outcome = block_on(whole);
        }
        IdentityProvider::Devidp => {
            progress = Progress::new(Unit::Milliseconds, devidp::LIMIT);
            let wire = Arc::new(Wire::new(devidp::LIMIT)?);
            let person = person(arguments, &target, &wire, &mut progress);
            let whole = devidp::whole(&program, &folder, wire, person, &mut progress);
            outcome = block_on(whole);
        }
        IdentityProvider::OidcProvider => {
            progress = Progress::new(Unit::Seconds, oidc_provider::LIMIT);
            let wire = Arc::new(Wire::new(oidc_provider::LIMIT)?);
            let person = person(arguments, &target, &wire, &mut progress);
            let whole = oidc_provider::whole(&program, &target, &folder, wire, person, &mut progress);
            outcome = block_on(whole);
        }
        IdentityProvider::Keycloak => {
            progress = Progress::new(Unit::Seconds, keycloak::LIMIT);
            let wire = Arc::new(Wire::new(keycloak::LIMIT)?);
            let person = person(arguments, &target, &wire, &mut progress);
            let stage = keycloak::Wanted {
                program: &program,
                target: &target,
                folder: &folder,
                ready_within: Duration::from_secs(arguments.ready_within),
                only: &arguments.only,
            };
            let whole = keycloak::whole(&stage, wire, person, &mut progress);
            outcome = block_on(whole);
        }
    }
    println!("\n{}", progress.table());
    outcome.with_context(|| format!("the walk failed; what the programs wrote is in {}", folder.display()))
}

/// Who consents in the walk of the shipped client.
fn person(arguments: &Arguments, target: &Path, wire: &Arc<Wire>, progress: &mut Progress) -> Person {
    if arguments.browser {
        match Chromium::find(&target.join("pictures").join(arguments.idp.name())) {
            Some(chromium) => return Person::with_chromium(USER, chromium),
            None => progress.skip("a browser at the pages", &format!("none of {} is here", Chromium::names())),
        }
    }
    Person::with_forms(USER, Arc::clone(wire))
}

impl IdentityProvider {
    fn name(self) -> &'static str {
        match self {
            Self::Devidp => "devidp",
            Self::OidcProvider => "oidc-provider",
            Self::Keycloak => "keycloak",
        }
    }
}

fn fresh_folder(target: &Path) -> anyhow::Result<PathBuf> {
    let folder = target.join("e2e");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be emptied", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}
