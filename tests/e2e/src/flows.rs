//! `cargo xtask e2e`: the real program with a real authorization server, from the first 401 to the
//! end of a session.
//!
//! Everything runs on loopback. The output of the programs is kept in `target/e2e`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::{ArgGroup, Args, ValueEnum};

use crate::{
    broker, broker_clients, chromium::Chromium, deployment::USER, devidp, guides, keycloak,
    metrics, oidc_provider, progress::Progress, readers, recorder::Recorder, replicas, restarts,
    sign_in, test_user::TestUser,
};
use portcullis_scenarios::block_on;
use xtask::{built, checklist::Unit, workspace};

/// The runs that take the place of the flow with an authorization server. Only one can be selected.
const SEPARATE: &str = "separate";

/// The separate runs in which no user has a browser.
const WITHOUT_BROWSER: [&str; 7] = [
    "readers",
    "sign_in",
    "restarts",
    "broker_clients",
    "guides",
    "replicas",
    "metrics",
];

/// The options of `cargo xtask e2e`.
#[derive(Args)]
#[command(group = ArgGroup::new(SEPARATE).multiple(false).conflicts_with_all(["idp", "only"]))]
pub(crate) struct Arguments {
    /// The authorization server.
    #[arg(long, value_enum, default_value_t)]
    idp: IdentityProvider,
    /// The time limit in seconds of each start of Keycloak.
    #[arg(long, value_name = "SECONDS", default_value_t = READY_WITHIN)]
    ready_within: u64,
    /// Consent in a headless Chromium instead of submitting the forms of the pages. Screenshots of
    /// all pages are kept in the target folder. Needs Chromium and Node.js 20; without Chromium,
    /// forms are submitted, and `--broker` fails.
    #[arg(long, conflicts_with_all = WITHOUT_BROWSER)]
    browser: bool,
    /// Run only this scenario with Keycloak; can be repeated.
    #[arg(long, value_enum, value_name = "SCENARIO")]
    only: Vec<keycloak::Scenario>,
    /// Instead, send a corpus of messages through the gateway to real readers of JSON and MCP, and
    /// compare what they read with what was checked and audited. Needs Node.js, Python and Go; a
    /// reader without them is skipped.
    #[arg(long, group = SEPARATE)]
    readers: bool,
    #[command(flatten)]
    reader_options: readers::Options,
    /// Instead, run `login` and `connect` at every tested authorization server and in every tested
    /// network, and print one table. Needs Node.js, Python and Java; a server without them is
    /// skipped. The first run downloads 400 MB.
    #[arg(long, group = SEPARATE)]
    sign_in: bool,
    #[command(flatten)]
    sign_in_options: sign_in::Options,
    /// Instead, restart `serve` with the default configuration while clients of other makers have
    /// sessions: the TypeScript SDK (v1 and v2), the Python SDK and mcp-remote. Needs Node.js and
    /// Python; a client without them is skipped.
    #[arg(long, group = SEPARATE)]
    restarts: bool,
    /// Instead, sign in at a broker with `login`, `connect` and clients of other makers: the
    /// TypeScript SDK (v1 and v2) and the Python SDK. The broker is in front of every provider that
    /// the development server imitates, of Keycloak and of npm's oidc-provider. At the latter two,
    /// grants are ended in every way, too. Needs Node.js, Python and Java; what lacks them is
    /// skipped.
    #[arg(long, group = SEPARATE)]
    broker: bool,
    #[command(flatten)]
    broker_options: broker::Options,
    /// Instead, have clients of many makers sign in at a broker, ask for a further scope, refresh
    /// an expired token and continue after the grant was ended, and print one table. Needs Node.js
    /// and Python; a client without them is skipped. The first run compiles a client on rmcp.
    #[arg(long, group = SEPARATE)]
    broker_clients: bool,
    /// Try only this client; can be repeated.
    #[arg(long, value_enum, value_name = "CLIENT", requires = "broker_clients")]
    client: Vec<broker_clients::Maker>,
    /// Instead, execute the commands of the README, the guides in `docs/guides` and the pages of
    /// `docs/use`. A page whose programs are missing is skipped. The ports 3000, 3001, 8000, 8080,
    /// 8443 and 9000 to 9002 must be free.
    #[arg(long, group = SEPARATE)]
    guides: bool,
    #[command(flatten)]
    guide_options: guides::Options,
    /// Instead, run 32 clients against three replicas behind nginx for 10 minutes, while replicas
    /// and Redis are killed. Needs nginx and redis-server.
    #[arg(long, group = SEPARATE)]
    replicas: bool,
    #[command(flatten)]
    replica_options: replicas::Options,
    /// Instead, run every query of the dashboard and of the alerts in `deploy` at a real
    /// Prometheus. Without Prometheus, the run is reported as skipped.
    #[arg(long, group = SEPARATE)]
    metrics: bool,
}

/// The default time limit of a start of Keycloak, in seconds. On a busy machine with two cores, the
/// first start of Keycloak takes about 60 s.
const READY_WITHIN: u64 = 180;

/// The authorization servers of the flow.
#[derive(Clone, Copy, Default, ValueEnum)]
enum IdentityProvider {
    /// The development authorization server of this workspace. Takes seconds and needs no other
    /// program.
    #[default]
    Devidp,
    /// npm's oidc-provider 9.13.3. Takes a minute and needs npm; the first run downloads 40 MB,
    /// including Node.js 22.
    OidcProvider,
    /// Keycloak 26.7.3. Takes about four minutes and 1 GB of memory, and needs Java 17 or newer,
    /// `tar`, and 400 MB in the target folder; the first run downloads 176 MB from Maven Central.
    Keycloak,
}

/// Builds the program and runs what is selected. Fails when a step fails. The error names the
/// folder with the output of the programs.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = built::build(&["--package=portcullis", "--bin=portcullis", "--locked"])?
        .program("portcullis")?;
    let target = workspace::metadata()?.target_directory;
    let folder = fresh_folder(&target)?;
    let environment = sign_in::Environment {
        program: &program,
        target: &target,
        folder: &folder,
        ready_within: Duration::from_secs(arguments.ready_within),
    };
    let result = if arguments.sign_in {
        block_on(sign_in::run(&environment, &arguments.sign_in_options))
    } else if arguments.restarts {
        block_on(restarts::run(&program, &target, &folder))
    } else if arguments.broker {
        block_on(broker::run(
            &environment,
            &arguments.broker_options,
            arguments.browser,
        ))
    } else if arguments.broker_clients {
        block_on(broker_clients::run(
            &program,
            &target,
            &folder,
            &arguments.client,
        ))
    } else if arguments.guides {
        block_on(guides::run(
            &program,
            &target,
            &folder,
            &arguments.guide_options,
        ))
    } else {
        in_steps(arguments, &program, &target, &folder)
    };
    result.with_context(|| {
        format!(
            "the run failed; the output of the programs is in {}",
            folder.display()
        )
    })
}

/// Runs what consists of steps, and prints their table.
fn in_steps(
    arguments: &Arguments,
    program: &Path,
    target: &Path,
    folder: &Path,
) -> anyhow::Result<()> {
    let mut progress;
    let result = if arguments.readers {
        progress = Progress::new(Unit::Seconds, readers::LIMIT);
        block_on(readers::run(
            program,
            target,
            folder,
            arguments.reader_options,
            &mut progress,
        ))
    } else if arguments.metrics {
        progress = Progress::new(Unit::Seconds, metrics::LIMIT);
        block_on(metrics::run(folder, &mut progress))
    } else if arguments.replicas {
        progress = Progress::new(Unit::Seconds, replicas::LIMIT);
        let upstream = built::build(&["--workspace", "--bin=everything_server", "--locked"])?;
        let upstream = upstream.program("everything_server")?;
        let environment = replicas::Environment {
            program,
            upstream: &upstream,
            folder,
        };
        block_on(replicas::run(
            &environment,
            arguments.replica_options,
            &mut progress,
        ))
    } else {
        progress = arguments.idp.progress();
        with_identity_provider(arguments, program, target, folder, &mut progress)
    };
    println!("\n{}", progress.table());
    result
}

/// Runs the flow with an authorization server.
fn with_identity_provider(
    arguments: &Arguments,
    program: &Path,
    target: &Path,
    folder: &Path,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let recorder = Arc::new(Recorder::new(arguments.idp.step_limit())?);
    let user = test_user(arguments, target, &recorder, progress);
    match arguments.idp {
        IdentityProvider::Devidp => {
            block_on(devidp::run(program, folder, recorder, user, progress))
        }
        IdentityProvider::OidcProvider => block_on(oidc_provider::run(
            program, target, folder, recorder, user, progress,
        )),
        IdentityProvider::Keycloak => {
            let options = keycloak::Options {
                program,
                target,
                folder,
                ready_within: Duration::from_secs(arguments.ready_within),
                only: &arguments.only,
            };
            block_on(keycloak::run(&options, recorder, user, progress))
        }
    }
}

/// Returns the user who consents in the flow of the shipped client.
fn test_user(
    arguments: &Arguments,
    target: &Path,
    recorder: &Arc<Recorder>,
    progress: &mut Progress,
) -> TestUser {
    if arguments.browser {
        match Chromium::find(&target.join("pictures").join(arguments.idp.name())) {
            Some(chromium) => return TestUser::with_chromium(USER, chromium),
            None => progress.skip(
                "consent in a browser",
                &format!("none of {} is installed", Chromium::names()),
            ),
        }
    }
    TestUser::with_forms(USER, Arc::clone(recorder))
}

impl IdentityProvider {
    /// Returns the name in paths.
    fn name(self) -> &'static str {
        match self {
            Self::Devidp => "devidp",
            Self::OidcProvider => "oidc-provider",
            Self::Keycloak => "keycloak",
        }
    }

    /// Returns the time limit of each step.
    fn step_limit(self) -> Duration {
        match self {
            Self::Devidp => devidp::LIMIT,
            Self::OidcProvider => oidc_provider::LIMIT,
            Self::Keycloak => keycloak::LIMIT,
        }
    }

    /// Returns the progress of a run with this authorization server.
    fn progress(self) -> Progress {
        let unit = match self {
            Self::Devidp => Unit::Milliseconds,
            Self::OidcProvider | Self::Keycloak => Unit::Seconds,
        };
        Progress::new(unit, self.step_limit())
    }
}

/// Returns an empty folder for the output of the programs.
fn fresh_folder(target: &Path) -> anyhow::Result<PathBuf> {
    let folder = target.join("e2e");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("{} cannot be emptied", folder.display()))?;
    }
    fs::create_dir_all(&folder)
        .with_context(|| format!("{} cannot be created", folder.display()))?;
    Ok(folder)
}
