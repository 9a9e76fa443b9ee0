//! `portcullis doctor URL`: which step of the authorization chain fails, and why.

use std::{io, process::ExitCode, sync::Arc};

use owo_colors::{OwoColorize as _, Stream};
use portcullis_discovery::{FetchSettings, HttpFetch};
use portcullis_doctor::{Doctor, Finding, Report, Step, Verdict};
use portcullis_metadata::SystemClock;
use url::Url;

use crate::cli;

/// With problems, or when it could not run.
const PROBLEMS: u8 = 1;
const NOT_RUN: u8 = 2;

pub(crate) fn run(arguments: &cli::Doctor) -> ExitCode {
    match examine(arguments) {
        Ok(report) if report.first_problem().is_none() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(PROBLEMS),
        Err(error) => {
            super::report(&error);
            ExitCode::from(NOT_RUN)
        }
    }
}

fn examine(arguments: &cli::Doctor) -> anyhow::Result<Report> {
    let url = Url::parse(&arguments.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| anyhow::anyhow!("URL is no http or https URL: {:?}", arguments.url))?;
    let fetch = HttpFetch::new(FetchSettings { ca_file: arguments.ca_file.clone(), ..FetchSettings::default() })?;
    let doctor = Doctor::new(Arc::new(fetch), Arc::new(SystemClock::new()))
        .allow_private_addresses(arguments.allow_private);

    let mut printed = Ok(());
    let mut tell = |step: &Step| {
        if !arguments.json && printed.is_ok() {
            printed = print_step(step);
        }
    };
    let report = super::control_runtime()?.block_on(doctor.examine(&url, &mut tell));
    printed?;
    if arguments.json {
        super::print(serde_json::to_string_pretty(&report)?)?;
    } else {
        print_summary(&report)?;
    }
    Ok(report)
}

fn print_step(step: &Step) -> io::Result<()> {
    super::print(step.title.if_supports_color(Stream::Stdout, |text| text.bold()))?;
    if let Some(asked) = &step.asked {
        let answer = match &step.answered {
            Some(answered) => match &answered.content_type {
                Some(content_type) => format!("{} {content_type}", answered.status),
                None => answered.status.to_string(),
            },
            None => "no answer".to_owned(),
        };
        let exchange = format!("  {} {} -> {answer}", asked.method, asked.url);
        super::print(exchange.if_supports_color(Stream::Stdout, |text| text.dimmed()))?;
    }
    step.findings.iter().try_for_each(print_finding)
}

fn print_finding(finding: &Finding) -> io::Result<()> {
    let Finding { verdict, rule, text, fix } = finding;
    super::print(format_args!("  {} {text}", mark(*verdict)))?;
    if *verdict >= Verdict::Warning {
        super::print(format_args!("    rule: {} ({})", rule.source, rule.id))?;
    }
    match fix {
        Some(fix) => super::print(format_args!("    fix:  {fix}")),
        None => Ok(()),
    }
}

fn mark(verdict: Verdict) -> String {
    match verdict {
        Verdict::Met => "ok     ".if_supports_color(Stream::Stdout, |text| text.green()).to_string(),
        Verdict::Warning => "warning".if_supports_color(Stream::Stdout, |text| text.yellow()).to_string(),
        Verdict::Problem => "problem".if_supports_color(Stream::Stdout, |text| text.red()).to_string(),
        _ => "note   ".to_owned(),
    }
}

fn print_summary(report: &Report) -> io::Result<()> {
    let of = |verdict| report.count(verdict);
    let (met, warnings, problems) = (of(Verdict::Met), of(Verdict::Warning), of(Verdict::Problem));
    super::print(format_args!("\n{met} rules met, {warnings} warnings, {problems} problems"))?;
    match report.first_problem() {
        Some(first) => super::print(format_args!("mend first: {} ({})", first.text, first.rule.source)),
        None => super::print("clients that keep to the standards get as far as the authorization server's login"),
    }
}
