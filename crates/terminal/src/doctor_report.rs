//! The text of an examination by `portcullis-doctor`.

use std::io;

use owo_colors::{OwoColorize as _, Stream};
use portcullis_doctor::{Finding, Hop, HopState, Link, Report, ResponseSummary, Step, Verdict};

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

pub(crate) fn answer(answered: Option<&ResponseSummary>) -> String {
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

/// Prints the chain with one line for each hop: its state, its address, and its first problem or
/// warning.
///
/// # Errors
/// As [`print()`].
pub fn print_chain(report: &Report) -> io::Result<()> {
    let title = "the chain";
    print(format_args!(
        "\n{}",
        title.if_supports_color(Stream::Stdout, |text| text.bold())
    ))?;
    let chain = report.chain();
    chain
        .iter()
        .enumerate()
        .try_for_each(|(index, link)| print(hop_line(link, reason_not_examined(&chain, index))))
}

fn hop_line(link: &Link<'_>, reason: &str) -> String {
    let main = link.main_finding();
    let mark = match (link.state(), main) {
        (HopState::NotExamined, _) => "skipped".to_owned(),
        (_, Some(finding)) => mark(finding.verdict),
        (_, None) => mark(Verdict::Met),
    };
    let mut line = format!("  {mark} {}", link.hop.target());
    if let Some(address) = link.address() {
        line = line + " " + address;
    }
    match (link.state(), main) {
        (HopState::NotExamined, _) => line + ": " + reason,
        (_, Some(finding)) => line + ": " + &finding.text,
        (_, None) => line,
    }
}

/// Why the hop with this index is not examined, if it is not.
pub(crate) fn reason_not_examined(chain: &[Link<'_>], index: usize) -> &'static str {
    let mut earlier = chain.iter().take(index);
    if earlier.any(|link| link.state() == HopState::Fails) {
        "a hop before it fails"
    } else if chain.get(index).is_some_and(|link| link.hop == Hop::Server) {
        "a sign-in is necessary (--login)"
    } else {
        "no step has reached it"
    }
}

/// Prints how many rules are met, and what to fix first, with its fix. `more_warnings` are counted
/// with those of the report.
///
/// # Errors
/// As [`print()`].
pub fn print_summary(report: &Report, more_warnings: usize) -> io::Result<()> {
    print(format_args!("\n{}", counts(report, more_warnings)))?;
    let Some(first) = report.first_problem() else {
        return Ok(());
    };
    print(format_args!(
        "fix first: {} ({})",
        first.text, first.rule.source
    ))?;
    match &first.fix {
        Some(fix) => print(format_args!("  fix: {fix}")),
        None => Ok(()),
    }
}

/// How many rules are met, and how many warnings and problems there are.
pub(crate) fn counts(report: &Report, more_warnings: usize) -> String {
    format!(
        "{} met, {}, {}",
        counted(report.count(Verdict::Met), "rule"),
        counted(report.count(Verdict::Warning) + more_warnings, "warning"),
        counted(report.count(Verdict::Problem), "problem")
    )
}
