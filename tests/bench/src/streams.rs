//! `cargo xtask bench streams`: the memory of an idle event stream, and what stays when streams
//! have closed.

mod client;
mod report;
mod upstream;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use portcullis_metadata::SystemClock;
use portcullis_scenarios::{Scratch, block_on, free_address, portcullis_command};
use portcullis_testkit::TestIssuer;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::sleep;

use self::{
    client::Client,
    report::{Report, Round},
};
use super::{
    configuration::{BASE_URL, ISSUER, PATH},
    process::MeasuredProcess,
};
use xtask::built;

pub(super) use self::upstream::run as run_upstream;

/// What to measure.
#[derive(Args)]
pub(super) struct Options {
    /// Streams that are open at once.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=25_000))]
    streams: u32,
    /// How often all streams open and close.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// The release build to measure, in place of one that is built now.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Print the figures for machines.
    #[arg(long)]
    json: bool,
}

const STREAMS_PER_OWNER: u32 = 100;
/// Descriptors for everything but streams.
const RESERVED_FILES: u64 = 600;
/// How long the server has to return memory after the streams have closed.
const SETTLE: Duration = Duration::from_secs(15);

/// Measures and prints. Fails when a stream does not open, or a goal is missed.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let portcullis = match &options.program {
        Some(program) => program.clone(),
        None => built::build(&["--profile=dist", "--package=portcullis", "--bin=portcullis"])?
            .program("portcullis")?,
    };
    let report = block_on(measure(options, &portcullis))?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        report.print();
    }
    report.check_goals()
}

/// Opens and closes all streams in each round.
async fn measure(options: &Options, portcullis: &Path) -> anyhow::Result<Report> {
    let streams = options.streams.min(possible_streams());
    if streams < options.streams {
        eprintln!(
            "the hard limit of open files permits {streams} streams; raise it with `ulimit -Hn`"
        );
    }
    let folder = Scratch::folder("streams");
    let mut upstream = Command::new(std::env::current_exe()?);
    upstream.arg("streams-upstream");
    let upstream = MeasuredProcess::announcing(&mut upstream)?;
    let test_issuer = TestIssuer::new(ISSUER)
        .with_resource(&format!("{BASE_URL}{PATH}"))
        .with_clock(SystemClock::new());
    fs::write(folder.path().join("jwks.json"), test_issuer.jwks_json())?;
    let listen = free_address()?;
    let configuration = folder.path().join("streams.toml");
    fs::write(
        &configuration,
        configuration_text(listen, upstream.address, &folder),
    )?;
    let mut server = portcullis_command(portcullis);
    server
        .args(["serve", "--config"])
        .arg(&configuration)
        .stdout(Stdio::null());
    server.stderr(fs::File::create(folder.path().join("server.log"))?);
    let mut server = MeasuredProcess::start(&mut server, listen)?;
    drop(server.listening().await.with_context(|| {
        fs::read_to_string(folder.path().join("server.log")).unwrap_or_default()
    })?);

    let owners = streams.div_ceil(STREAMS_PER_OWNER);
    let tokens: Vec<_> = (0..owners)
        .map(|owner| {
            test_issuer
                .token()
                .expires_in(3_600)
                .scope("mcp:tools")
                .subject(&format!("user-{owner}"))
                .sign()
        })
        .collect();
    let clients = Client::open_all(listen, tokens).await?;
    sleep(Duration::from_secs(2)).await;
    let start = server.memory()?;
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        eprintln!("round {} of {}", round + 1, options.rounds);
        let mut open = Vec::new();
        for client in &clients {
            for _ in 0..STREAMS_PER_OWNER.min(streams - u32::try_from(open.len())?) {
                open.push(client.open_stream().await?);
            }
        }
        sleep(Duration::from_secs(1)).await;
        let while_open = server.memory()?;
        drop(open);
        sleep(SETTLE).await;
        rounds.push(Round {
            open: while_open,
            closed: server.memory()?,
        });
    }
    Report::new(streams, start, rounds)
}

/// Returns the configuration of the server. The key set is in the folder.
fn configuration_text(listen: SocketAddr, upstream: SocketAddr, folder: &Scratch) -> String {
    let folder = folder.as_str();
    format!(
        r#"listen = "{listen}"
base_url = "{BASE_URL}"
workers = 2

[limits]
max_connections = 30000

[[issuer]]
issuer = "{ISSUER}"
jwks_file = "{folder}/jwks.json"

[[resource]]
endpoint = "{PATH}"
required_scopes = ["mcp:tools"]
upstream = {{ http = "http://{upstream}/mcp" }}
"#
    )
}

/// Returns the streams that the hard limit of open files permits. The server has two descriptors
/// for each. Raises the soft limit of this process and of those that it starts.
fn possible_streams() -> u32 {
    let hard = getrlimit(Resource::Nofile)
        .maximum
        .unwrap_or(u64::MAX)
        .min(1 << 20);
    // Without the permission, the soft limit is enough for fewer streams, and one fails to open.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(hard),
            maximum: Some(hard),
        },
    );
    u32::try_from(hard.saturating_sub(RESERVED_FILES) / 2).unwrap_or(u32::MAX)
}
