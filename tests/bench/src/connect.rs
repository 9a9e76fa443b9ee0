//! `cargo xtask bench connect`: compares the stdio bridge with `mcp-remote`, both driven by the
//! TypeScript SDK's client.

mod behavior;
mod driver;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{bail, ensure};
use clap::Args;
use portcullis_scenarios::{Scratch, block_on, free_address, npm_install, portcullis_command};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::behavior::Behavior;
use super::{figures::Spread, process::MeasuredProcess, report::machine};
use xtask::{built, workspace};

/// The options of the comparison.
#[derive(Args)]
pub(super) struct Options {
    /// The number of rounds. In each round, both bridges are measured once.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(7..))]
    rounds: u16,
    /// Calls per round and bridge.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(20..))]
    calls: u32,
    /// Measure this release build instead of building one.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

const PACKAGE: &str = "tests/bench/src/connect";
const OURS: &str = "portcullis connect";
const THEIRS: &str = "mcp-remote";

// The goals: see `docs/use/connect.md`.
/// The most resident memory, in MB.
const MEMORY_GOAL: f64 = 12.0;
/// The longest time to the first response, in milliseconds.
const FIRST_GOAL: f64 = 100.0;
/// The longest time of a call, divided by that of `mcp-remote`.
const CALL_GOAL: f64 = 0.25;

const MB: f64 = 1e6;

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    block_on(compare(options))
}

/// Builds and installs the bridges, measures them in turn, and prints the report.
async fn compare(options: &Options) -> anyhow::Result<()> {
    let portcullis = match &options.program {
        Some(program) => program.clone(),
        None => built::build(&["--profile=dist", "--package=portcullis", "--bin=portcullis"])?
            .program("portcullis")?,
    };
    let packages = workspace::metadata()?
        .target_directory
        .join("bench-connect");
    npm_install(&packages, &workspace::root().join(PACKAGE)).await?;
    let packages = packages.join("node_modules");
    let folder = Scratch::folder("bench");
    let listen = free_address()?;
    let idp = free_address()?;
    let mut demo = portcullis_command(&portcullis);
    demo.args([
        "demo",
        "--auto-consent",
        "--listen",
        &listen.to_string(),
        "--idp-listen",
        &idp.to_string(),
    ]);
    demo.stdout(Stdio::null())
        .stderr(fs::File::create(folder.path().join("demo.log"))?);
    let mut demo = MeasuredProcess::start(&mut demo, listen)?;
    demo.listening().await?;

    let url = format!("http://{listen}/mcp");
    let store = folder.path().join("store");
    let login = Command::new(&portcullis)
        .args(["login", &url, "--auto-consent", "--store"])
        .arg(&store)
        .status()?;
    ensure!(login.success(), "portcullis login ended with {login}");

    let behavior = Behavior::observe(&portcullis, &packages, folder.path())?;
    let report = Report {
        rounds: measure(options, &portcullis, &packages, &url, folder.path())?,
        behavior,
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    report.check_goals()
}

/// The figures of one bridge in one round.
#[derive(Deserialize, Serialize)]
struct Sample {
    bridge: String,
    first_ms: f64,
    call_ms: f64,
    resident: f64,
    anonymous: f64,
}

/// Measures all bridges, several times in turn.
fn measure(
    options: &Options,
    portcullis: &Path,
    packages: &Path,
    url: &str,
    folder: &Path,
) -> anyhow::Result<Vec<Sample>> {
    let plan = json!({
        "sdk": packages.join("@modelcontextprotocol/sdk"),
        "rounds": options.rounds,
        "calls": options.calls,
        "bridges": [
            { "name": OURS, "command": portcullis, "args": ["connect", url, "--store", folder.join("store")] },
            {
                "name": THEIRS, "command": "node", "args": [packages.join("mcp-remote/dist/proxy.js"), url],
                "env": { "MCP_REMOTE_CONFIG_DIR": folder.join("mcp-auth") }, "signIn": true,
            },
        ],
    });
    let samples: Vec<Sample> = driver::run("driver.mjs", &plan, folder)?;
    for bridge in [OURS, THEIRS] {
        let count = samples
            .iter()
            .filter(|sample| sample.bridge == bridge)
            .count();
        ensure!(
            count == usize::from(options.rounds),
            "the driver returned {count} samples of {bridge}"
        );
    }
    Ok(samples)
}

/// The figures of all rounds.
#[derive(Serialize)]
struct Report {
    rounds: Vec<Sample>,
    behavior: Behavior,
}

impl Report {
    fn spread(&self, bridge: &str, number: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(
            self.rounds
                .iter()
                .filter(|sample| sample.bridge == bridge)
                .map(number)
                .collect(),
        )
    }

    fn call_ratio(&self) -> f64 {
        let call = |bridge| self.spread(bridge, |sample| sample.call_ms).median;
        call(OURS) / call(THEIRS)
    }

    /// Fails if a goal is missed.
    fn check_goals(&self) -> anyhow::Result<()> {
        let resident = self.spread(OURS, |sample| sample.resident / MB).median;
        let first = self.spread(OURS, |sample| sample.first_ms).median;
        let call = self.call_ratio();
        let goals = [
            ("resident memory in MB", resident, MEMORY_GOAL),
            ("time to the first response in ms", first, FIRST_GOAL),
            ("time per call, relative to mcp-remote", call, CALL_GOAL),
        ];
        let missed = goals.into_iter().filter(|(_, value, goal)| value > goal);
        let missed = missed.map(|(name, value, goal)| format!("{name}: {value:.2}, goal {goal}"));
        let missed: Vec<_> = missed.chain(self.behavior.missed()).collect();
        if missed.is_empty() {
            Ok(())
        } else {
            bail!("goals are missed: {}", missed.join("; "))
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rounds; {}", self.rounds.len() / 2, machine())?;
        writeln!(f, "{:<22}{:>28}{:>28}", "median (min, max)", OURS, THEIRS)?;
        let mut line = |name: &str, number: fn(&Sample) -> f64| {
            let text = |bridge| {
                let Spread { median, min, max } = self.spread(bridge, number);
                format!("{median:.2} ({min:.2}, {max:.2})")
            };
            writeln!(f, "{name:<22}{:>28}{:>28}", text(OURS), text(THEIRS))
        };
        line("resident, MB", |sample| sample.resident / MB)?;
        line("of it anonymous, MB", |sample| sample.anonymous / MB)?;
        line("first response, ms", |sample| sample.first_ms)?;
        line("call, ms", |sample| sample.call_ms)?;
        writeln!(
            f,
            "a call takes {:.2} of the time of mcp-remote\n",
            self.call_ratio()
        )?;
        self.behavior.fmt(f)
    }
}
