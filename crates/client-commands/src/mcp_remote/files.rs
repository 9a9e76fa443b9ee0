//! The files and JSON values in the arguments of mcp-remote.

use std::{fs::File, io::Read as _, path::Path};

use anyhow::{Context as _, bail, ensure};
use portcullis_config::plan::secret_file_warning;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::arguments::header;

/// The variables of the environment.
pub(crate) type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

const MAX_FILE: u64 = 256 * 1024;

/// The lines of a header file, without empty lines and comments.
pub(super) fn header_lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = read("--header-file", path)?;
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    ensure!(
        lines.iter().all(|line| header(line).is_some()),
        "--header-file {}: a line is not of the form `Name: value`",
        path.display()
    );
    Ok(lines)
}

/// Parses a JSON object, or the file after `@`, and replaces `${NAME}` by variables. None if it
/// contains variables and they are not known yet. An unset variable is not replaced. Errors do not
/// contain the text, which can have a secret.
pub(super) fn json_argument(
    option: &str,
    value: &str,
    environment: Option<&Variables<'_>>,
) -> anyhow::Result<Option<Map<String, Value>>> {
    let text = match value.strip_prefix('@') {
        Some(path) => read(option, Path::new(path))?,
        None => Zeroizing::new(value.to_owned()),
    };
    let text = match environment {
        None if text.contains("${") => return Ok(None),
        None => text,
        Some(variable) => replaced(&text, variable),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        _ => bail!("{option} is not a JSON object; it takes the object itself or @FILE"),
    }
}

fn replaced(text: &str, variable: &Variables<'_>) -> Zeroizing<String> {
    let mut whole = Zeroizing::new(String::with_capacity(text.len()));
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        whole.push_str(before);
        match variable(name) {
            Some(value) => whole.push_str(&value),
            None => {
                whole.push_str("${");
                whole.push_str(name);
                whole.push('}');
            }
        }
        rest = behind;
    }
    whole.push_str(rest);
    whole
}

fn read(option: &str, path: &Path) -> anyhow::Result<Zeroizing<String>> {
    if let Some(warning) = secret_file_warning(option, path) {
        tracing::warn!("{warning}");
    }
    let failed = || format!("{option}: the file {} cannot be read", path.display());
    let file = File::open(path).with_context(failed)?;
    ensure!(
        file.metadata().with_context(failed)?.is_file(),
        "{option}: {} is not a file",
        path.display()
    );
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .with_context(failed)?;
    ensure!(
        text.len() as u64 <= MAX_FILE,
        "{option}: the file {} is larger than 256 KiB",
        path.display()
    );
    Ok(text)
}
