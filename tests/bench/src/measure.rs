//! The run: first the steps, then rounds with all variants.

use std::{path::Path, process::Stdio};

use anyhow::{Context as _, ensure};
use portcullis_scenarios::block_on;
use serde_json::{Value, json};

use super::{
    Options,
    build::Programs,
    figures::{Figures, Sample},
    hostile, load, nginx,
    report::Report,
    servers::Servers,
    variant::Variant,
};

/// Measures and prints. All processes are ended, even after a failure or an interruption.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let programs = Programs::build(options)?;
    block_on(measure(options, &programs))
}

/// Measures the steps and the whole programs, and prints the report.
async fn measure(options: &Options, programs: &Programs) -> anyhow::Result<()> {
    let steps = match &programs.steps {
        Some(program) => Some(steps(program, options.json).await?),
        None => None,
    };
    let whole = match &programs.portcullis {
        Some(program) => Some(whole(options, program).await?),
        None => None,
    };
    if options.json {
        println!("{:#}", json!({ "steps": steps, "requests": whole }));
    } else if let Some(report) = whole {
        println!("\n{report}");
    }
    Ok(())
}

/// Runs the benchmark of the steps. It prints its own table, unless JSON is requested.
async fn steps(program: &Path, json: bool) -> anyhow::Result<Value> {
    eprintln!("measuring the steps of a request");
    let mut command = tokio::process::Command::new(program);
    command
        .args(json.then_some("--json"))
        .kill_on_drop(true)
        .stdin(Stdio::null());
    if json {
        command.stdout(Stdio::piped());
    }
    let running = command
        .spawn()
        .context("the benchmark of the steps could not be started")?;
    let output = running.wait_with_output().await?;
    ensure!(output.status.success(), "the benchmark of the steps failed");
    if json {
        Ok(serde_json::from_slice(&output.stdout)?)
    } else {
        Ok(Value::Null)
    }
}

/// Measures whole requests, over sockets.
async fn whole(options: &Options, portcullis: &Path) -> anyhow::Result<Report> {
    let nginx = nginx::version()?;
    let servers = Servers::start(portcullis, options.baseline.as_deref()).await?;
    let variants = servers.variants();
    eprintln!(
        "started {}",
        variants
            .iter()
            .map(|variant| variant.name())
            .collect::<Vec<_>>()
            .join(", ")
    );
    let rounds = usize::from(options.rounds);
    let times = load::times(options.requests);

    eprintln!("warming up");
    for variant in variants {
        servers.measure(*variant, times.div_ceil(10)).await?;
    }
    let mut figures = Figures::default();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let mut samples = [Sample::default(); Variant::COUNT];
        // Each round starts with another variant, so that none is always the first after a pause.
        for variant in variants
            .iter()
            .cycle()
            .skip(round % variants.len())
            .take(variants.len())
        {
            samples[variant.index()] = servers.measure(*variant, times).await?;
        }
        figures.add(samples);
    }
    let memory_after = servers.memory()?;
    let beside_hostile = hostile::measure(&servers, rounds, times).await?;
    Ok(Report {
        nginx,
        variants,
        request_bytes: servers.request().len(),
        requests: times * load::CONNECTIONS,
        memory_after,
        beside_hostile,
        starts: servers.starts,
        figures,
    })
}
