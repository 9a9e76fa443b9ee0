//! [`doctor_page`]: an examination by `portcullis-doctor` as a page for the browser.

mod page_text;

use std::fmt::Write as _;

use portcullis_doctor::{Finding, HopState, Link, Report, Step, Verdict};

use self::page_text::PageText;
use crate::{
    doctor_report::{answer, counts, reason_not_examined},
    output::counted,
};

/// The design of the page after a sign-in, which is in a crate below.
const STYLE: &str = include_str!("doctor_page/page.css");

/// The logo: a gate with bars, in the color of the text.
const LOGO: &str = r#"<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true"><path d="M4 21V10a8 8 0 0 1 16 0v11"/><path d="M9 4.2V19m6-14.8V19M4.5 10h15M4.5 15h15"/></svg>"#;

/// How many hops, steps of a hop, and findings of a step are shown.
const MAX_SHOWN: usize = 50;

/// Returns a self-contained HTML page with the chain as a picture: a box for each part, and at the
/// arrow to it the state of the hop with its findings. The steps with their requests can be opened.
///
/// The page has no script and loads nothing. Every text is escaped, has at most 1,000 characters,
/// and has neither queries of URLs nor the secrets that were sent to servers.
pub fn doctor_page(report: &Report) -> String {
    let chain = report.chain();
    let mut hops = String::new();
    for (index, link) in chain.iter().enumerate().take(MAX_SHOWN) {
        push_hop(&mut hops, link, reason_not_examined(&chain, index));
    }
    let first = report.first_problem().map(first_to_fix).unwrap_or_default();
    let resource = PageText(&report.resource);
    let counts = counts(report, 0);
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{resource} · portcullis doctor</title>
<style>
{STYLE}</style>
</head>
<body>
<header>{LOGO}<span>portcullis doctor</span></header>
<main>
<h1>The authorization chain of <span class="url">{resource}</span></h1>
<p class="soft">{counts}</p>
{first}<ol>
<li><div class="box"><h2>client</h2><p class="soft">a program that knows only the URL</p></div></li>
{hops}</ol>
</main>
</body>
</html>
"#
    )
}

fn first_to_fix(finding: &Finding) -> String {
    format!(
        "<div class=\"first\"><h2>Fix first</h2>\n{}</div>\n",
        text_of(finding)
    )
}

/// Appends the arrow with its findings, and the box that it leads to.
fn push_hop(html: &mut String, link: &Link<'_>, reason: &str) {
    let (class, sign, state) = match link.state() {
        HopState::Works => ("works", "✓", "works".to_owned()),
        HopState::Fails => ("fails", "✕", "fails".to_owned()),
        HopState::NotExamined => ("unknown", "–", format!("not examined: {reason}")),
    };
    let mut findings = String::new();
    let severe = link
        .findings()
        .filter(|finding| finding.verdict >= Verdict::Warning);
    push_bounded(&mut findings, severe, |html, finding| {
        push_finding(html, finding);
    });
    if !findings.is_empty() {
        findings = format!("<ul>\n{findings}</ul>\n");
    }
    let steps = steps_of(link);
    let target = link.hop.target();
    let address = link.address().map_or_else(String::new, |address| {
        format!("<p class=\"url\">{}</p>", PageText(address))
    });
    let _ = write!(
        html,
        r#"<li class="{class}">
<div class="arrow" aria-hidden="true"></div>
<div class="hop">
<p class="state"><span aria-hidden="true">{sign}</span> {state}</p>
{findings}{steps}</div>
<div class="box"><h2>{target}</h2>{address}</div>
</li>
"#
    );
}

/// The steps of a hop with their requests and the findings that are not shown at the arrow.
fn steps_of(link: &Link<'_>) -> String {
    if link.steps.is_empty() {
        return String::new();
    }
    let mut steps = String::new();
    push_bounded(&mut steps, link.steps.iter().copied(), push_step);
    let count = counted(link.steps.len(), "step");
    format!("<details><summary>{count}</summary>\n<ul>\n{steps}</ul>\n</details>\n")
}

fn push_step(html: &mut String, step: &Step) {
    let _ = write!(html, "<li>{}", PageText(&step.title));
    let answer = answer(step.response.as_ref());
    if let Some(request) = &step.request {
        let exchange = format!("{} {} -> {answer}", request.method, request.url);
        let _ = write!(html, "<p class=\"soft url\">{}</p>", PageText(&exchange));
    } else if step.response.is_some() {
        let _ = write!(html, "<p class=\"soft\">{}</p>", PageText(&answer));
    }
    html.push_str("\n<ul>\n");
    let others = step
        .findings
        .iter()
        .filter(|finding| finding.verdict < Verdict::Warning);
    push_bounded(html, others, push_finding);
    html.push_str("</ul></li>\n");
}

fn push_finding(html: &mut String, finding: &Finding) {
    let (class, word) = match finding.verdict {
        Verdict::Met => ("met", "ok"),
        Verdict::Warning => ("warning", "warning"),
        Verdict::Problem => ("problem", "problem"),
        _ => ("note", "note"),
    };
    let text = text_of(finding);
    let _ = writeln!(
        html,
        "<li class=\"finding\"><span class=\"verdict {class}\">{word}</span> {text}</li>"
    );
}

/// The text of a finding, and for warnings and problems the fix and the rule.
fn text_of(finding: &Finding) -> String {
    let mut html = format!("<p>{}</p>\n", PageText(&finding.text));
    if let Some(fix) = &finding.fix {
        let _ = writeln!(html, "<p><b>fix:</b> {}</p>", PageText(fix));
    }
    if finding.verdict >= Verdict::Warning {
        let rule = format!("{} ({})", finding.rule.source, finding.rule.id);
        let _ = writeln!(html, "<p class=\"soft\">rule: {}</p>", PageText(&rule));
    }
    html
}

/// Appends the first [`MAX_SHOWN`] items, and how many others there are.
fn push_bounded<T>(
    html: &mut String,
    mut items: impl Iterator<Item = T>,
    push: fn(&mut String, T),
) {
    for item in items.by_ref().take(MAX_SHOWN) {
        push(html, item);
    }
    let others = items.count();
    if others > 0 {
        let _ = writeln!(html, "<li class=\"soft\">and {others} more</li>");
    }
}

#[cfg(test)]
mod tests;
