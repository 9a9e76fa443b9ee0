//! The verification of an audit trail:
//! `cargo run -p portcullis-examples --example audit -- audit-key audit.jsonl*`
//!
//! The first file has the key of the chain, and the others are those of the trail, in any order.
//! Exits with 1 if the chain is broken or a file cannot be read.

use std::{
    env,
    error::Error,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use portcullis_audit::{
    ChainKeys,
    verify::{self, Report},
};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let key_file = arguments.next().ok_or("usage: audit KEY_FILE FILE...")?;
    let report = verified(&key_file, &arguments.collect::<Vec<_>>())?;
    writeln!(io::stdout(), "{}", summary(&report))?;
    Ok(if report.first_break.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Verifies the files of a trail. Heads of the log would show that the last records were removed;
/// here, none is given.
pub(crate) fn verified(key_file: &Path, files: &[PathBuf]) -> Result<Report, Box<dyn Error>> {
    let keys = ChainKeys::parse(&fs::read_to_string(key_file)?)?;
    Ok(verify::files(files, &keys, &[])?)
}

/// Returns one line about the chain. File names are escaped, and the causes have numbers of records
/// only.
pub(crate) fn summary(report: &Report) -> String {
    match &report.first_break {
        None => format!(
            "the chain of {} records is intact; {} were lost",
            report.records, report.lost
        ),
        Some(cause) => match (&cause.file, cause.line) {
            (Some(file), Some(line)) => {
                format!("broken in line {line} of {file:?}: {}", cause.message)
            }
            _ => format!("broken: {}", cause.message),
        },
    }
}
