//! `portcullis audit verify`: verifies the chain of audit records.

use std::{path::Path, process::ExitCode};

use anyhow::{Context as _, anyhow, bail};
use owo_colors::{OwoColorize as _, Stream};
use portcullis_audit::{
    ChainKeys,
    verify::{self, Break, Report},
};
use portcullis_config::{Diagnostic, Overrides, SecretSource, plan};
use portcullis_metadata::EscapedText;
use portcullis_state_store::StateDirectory;
use portcullis_terminal::{counted, print, print_json, print_note};
use serde_json::json;

use crate::cli;

pub(crate) fn verify(arguments: &cli::AuditVerify) -> anyhow::Result<ExitCode> {
    let keys = match &arguments.key_file {
        Some(file) => plan::audit_keys(&SecretSource::File(file.clone()))?,
        None => configured_keys(&arguments.config)?,
    };
    let report = verify::files(&arguments.files, &keys, &arguments.heads)?;
    if arguments.json {
        json(&report)?
    } else {
        human(&report)?
    }
    Ok(if report.first_break.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Reads the keys of a configuration: those of `audit.key`, or else of the state directory.
fn configured_keys(file: &Path) -> anyhow::Result<ChainKeys> {
    let fix = "name the file with the key of the chain with --key-file, or the configuration with --config";
    // As text: the fix is part of the error.
    let config = crate::load(file, Overrides::default())
        .map_err(|errors| anyhow!(errors.to_string()))
        .context(fix)?
        .config;
    if let Some(source) = config.audit.as_ref().and_then(|audit| audit.key.as_ref()) {
        return Ok(plan::audit_keys(source)?);
    }
    let directory =
        plan::state_dir_of(&config).map_err(|errors| anyhow!(Diagnostic::joined(&errors)))?;
    let Some(directory) = directory else {
        bail!("the configuration has neither audit.key nor a state directory; {fix}");
    };
    plan::audit_keys(&SecretSource::File(
        directory.join(StateDirectory::AUDIT_KEY),
    ))
    .context(fix)
}

fn json(report: &Report) -> anyhow::Result<()> {
    let mut value = serde_json::to_value(report)?;
    value["ok"] = json!(report.first_break.is_none());
    Ok(print_json(&value)?)
}

fn human(report: &Report) -> anyhow::Result<()> {
    if let Some(Break {
        message,
        file,
        line,
        ..
    }) = &report.first_break
    {
        let label = "broken:".if_supports_color(Stream::Stdout, |text| text.red());
        let place = match (file, line) {
            (Some(file), Some(line)) => format!("{}:{line}: ", file.display()),
            _ => String::new(),
        };
        print(format_args!(
            "{label} {}",
            EscapedText(&format!("{place}{message}"))
        ))?;
    }
    if let (Some(first), Some(last)) = (&report.first, &report.last) {
        print(format_args!(
            "{} records verified in {}: {} ({}) to {} ({})",
            report.records,
            counted(report.files.len(), "file"),
            first.seq,
            EscapedText(&first.timestamp),
            last.seq,
            EscapedText(&last.timestamp)
        ))?;
        print(format_args!("head: {}", last.head))?;
    }
    for note in notes(report) {
        print_note(&note)?;
    }
    if report.first_break.is_none() {
        print("the chain is intact")?;
    }
    Ok(())
}

/// Returns what a reader should know beyond the result.
fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if report.first.as_ref().is_some_and(|first| first.seq > 1) {
        notes.push("the records before the first one are in files that are not given".to_owned());
    }
    if report.chains > 1 {
        notes.push(format!(
            "there are {} chains, each after the regular end of the one before",
            report.chains
        ));
    }
    if report.lost > 0 {
        notes.push(format!(
            "{} records were lost because the queue was full; audit.lost is at their places",
            report.lost
        ));
    }
    if report.summed > 0 {
        notes.push(format!(
            "{} rejections have no records of their own; rejections has their number, reason and address",
            report.summed
        ));
    }
    if report.torn > 0 {
        notes.push(format!(
            "{} lines are incomplete after a crash or a full disk, and recorded as such",
            report.torn
        ));
    }
    if report.ends_within_line {
        notes.push("the last file ends within a line, which is not verified".to_owned());
    }
    if report.first_break.is_none() && !report.is_stopped {
        notes.push(
            "the trail does not end with audit.stopped: its process is running or was killed, or the end was cut off; \
             a later head from the log, given with --head, distinguishes them"
                .to_owned(),
        );
    }
    notes
}
