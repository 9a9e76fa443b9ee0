//! The text of an examination by `portcullis-doctor`.

use std::io;

use owo_colors::{OwoColorize as _, Stream};
use portcullis_doctor::{Finding, Report, ResponseSummary, Step, Verdict};

use crate::output::{counted, print};

/// Prints a step of an examination to standard output.
///
/// # Errors
/// As [`print()`].
pub fn print_step(step: &Step) -> io::Result<()> {
    print(
        step.title
            .if_supports_color(Stream::Stdout, |text| text.bold()),
    )?;
    if let Some(asked) = &step.request {
        let exchange = format!(
            "  {} {} -> {}",
            asked.method,
            asked.url,
            answer(step.response.as_ref())
        );
        print(exchange.if_supports_color(Stream::Stdout, |text| text.dimmed()))?;
    } else if step.response.is_some() {
        print(format_args!("  {}", answer(step.response.as_ref())))?;
    }
    step.findings.iter().try_for_each(print_finding)
}

fn answer(answered: Option<&ResponseSummary>) -> String {
    match answered {
        Some(response) => response.to_string(),
        None => "no answer".to_owned(),
    }
}

fn print_finding(finding: &Finding) -> io::Result<()> {
    let Finding {
        verdict,
        rule,
        text,
        fix,
        ..
    } = finding;
    print(format_args!("  {} {text}", mark(*verdict)))?;
    if *verdict >= Verdict::Warning {
        print(format_args!("    rule: {} ({})", rule.source, rule.id))?;
    }
    match fix {
        Some(fix) => print(format_args!("    fix:  {fix}")),
        None => Ok(()),
    }
}

fn mark(verdict: Verdict) -> String {
    match verdict {
        Verdict::Met => "ok     "
            .if_supports_color(Stream::Stdout, |text| text.green())
            .to_string(),
        Verdict::Warning => "warning"
            .if_supports_color(Stream::Stdout, |text| text.yellow())
            .to_string(),
        Verdict::Problem => "problem"
            .if_supports_color(Stream::Stdout, |text| text.red())
            .to_string(),
        _ => "note   ".to_owned(),
    }
}

/// Prints how many rules are met and what to fix first.
///
/// # Errors
/// As [`print()`].
pub fn print_summary(report: &Report) -> io::Result<()> {
    let of = |verdict| report.count(verdict);
    let met = of(Verdict::Met);
    let warnings = of(Verdict::Warning);
    let problems = of(Verdict::Problem);
    print(format_args!(
        "\n{} met, {}, {}",
        counted(met, "rule"),
        counted(warnings, "warning"),
        counted(problems, "problem")
    ))?;
    match report.first_problem() {
        Some(first) => print(format_args!(
            "fix first: {} ({})",
            first.text, first.rule.source
        )),
        None => Ok(()),
    }
}
