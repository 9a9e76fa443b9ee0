//! [`fix`]: what a value of the wrong type was meant to be.

use figment::{error::Actual, value::Value};

use super::lookup::last_name;
use crate::{KeyPath, Places, Span, schema, size, toml_text, variables};

/// Keys with any text as their value. A number or a boolean there only lacks its quotes.
const FREE_TEXT: &[&str] = &["client_id", "name", "one_of", "realm", "resource_name"];

/// The choices that switch something on, and off.
const ON: [&str; 2] = ["on", "required"];
const OFF: [&str; 2] = ["off", "none"];

/// Words of people and other programs, and the choices that they mean.
const WORDS: &[(&[&str], &[&str])] = &[
    (&["enabled", "on", "true", "yes"], &ON),
    (&["disabled", "false", "no", "off"], &OFF),
    (
        &["aad", "azure", "azure_ad", "azuread", "microsoft"],
        &["entra"],
    ),
    (&["amazon", "aws"], &["cognito"]),
    (&["google_workspace", "gsuite", "workspace"], &["google"]),
    (&["generic", "openid", "openid_connect"], &["oidc"]),
];

/// Returns what to write instead of a value of the wrong type, if the value shows it.
///
/// The fix repeats no string: it can be a misplaced secret.
pub(super) fn fix(
    key: &KeyPath,
    found: &Actual,
    value: Option<&Value>,
    places: &Places,
) -> Option<String> {
    let last = last_name(key);
    let text = value.and_then(Value::as_str);
    if let Some(text) = text.filter(|_| schema::keys_of(key).contains(&"requests")) {
        let (requests, per) = rate(text)?;
        return Some(format!(
            "write {last} = {{ requests = {requests}, per = \"{per}\" }}"
        ));
    }
    match (schema::type_name(key)?, found, text) {
        ("integer", _, Some(text)) if text.trim().parse::<i64>().is_ok() => {
            Some("write it without quotes".to_owned())
        }
        ("boolean", _, Some("true" | "false")) => Some("write it without quotes".to_owned()),
        ("integer", _, Some(text)) if !schema::unit(key).is_empty() => {
            let bytes = size::bytes(text)?;
            match places.variable(key) {
                Some(_) => Some(format!(
                    "set {}",
                    variables::assignment(key, &bytes.into())?
                )),
                None => Some(format!("write {last} = {bytes}")),
            }
        }
        ("integer", _, Some(text)) => no_duration(key, text),
        ("object", _, Some(_)) if key.header() == "issuer.jwks" => Some(
            "the URL of the keys is in jwks_uri, and the path of a file with keys in jwks_file"
                .to_owned(),
        ),
        ("string", _, None) if FREE_TEXT.contains(&last) => {
            let plain = match found {
                Actual::Unsigned(number) => number.to_string(),
                Actual::Signed(number) => number.to_string(),
                Actual::Bool(flag) => flag.to_string(),
                _ => return None,
            };
            Some(format!("write \"{plain}\""))
        }
        _ => None,
    }
}

/// Returns the number and the time of a rate as other programs write it, such as `10r/s` and `100
/// per minute`.
fn rate(text: &str) -> Option<(u32, String)> {
    let (requests, unit) = text.split_once('/').or_else(|| text.split_once(" per "))?;
    let requests = requests.trim().trim_end_matches("r").trim_end().parse();
    let per = format!("1{}", unit.trim());
    Span::parse(&per)?;
    Some((requests.ok()?, per))
}

/// Returns how to have the default of an integer for which a word is written. Empty for others.
pub(super) fn for_default(key: &KeyPath, value: Option<&Value>) -> &'static str {
    match value.and_then(Value::as_str) {
        Some("auto" | "default") if schema::range(key).is_some() => {
            "; remove the key for the default"
        }
        _ => "",
    }
}

/// Returns what an integer is for which a duration is written.
pub(crate) fn no_duration(key: &KeyPath, text: &str) -> Option<String> {
    Span::parse(text)?;
    let meaning = schema::meaning(key)?;
    let other = match key.header().as_str() {
        "audit.keep" => "; rotate_age is the age at which the file is rotated",
        _ => "",
    };
    Some(format!(
        "{} is {meaning}, and no time{other}",
        last_name(key)
    ))
}

/// Returns the choice that a boolean means, and the other one.
pub(super) fn choice(key: &KeyPath, found: &Actual) -> Option<String> {
    if matches!(found, Actual::Bool(false)) && key.header() == "state_dir" {
        return Some("write state_dir = \"off\" to keep everything in memory".to_owned());
    }
    let choices = schema::choices(key);
    let of = |words: [&str; 2]| {
        let mut names = words.iter().map(|name| toml_text::string(name));
        names.find(|name| choices.contains(name))
    };
    let (on, off) = (of(ON)?, of(OFF)?);
    let (meant, other) = match found {
        Actual::Bool(true) => (on, off),
        Actual::Bool(false) => (off, on),
        _ => return None,
    };
    Some(format!("write {} = {meant} (or {other})", last_name(key)))
}

/// Returns the known name of a choice that is written as one of the usual words for it.
pub(crate) fn word<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = written.to_ascii_lowercase();
    let (_, names) = WORDS
        .iter()
        .find(|(words, _)| words.contains(&written.as_str()))?;
    known.iter().copied().find(|name| names.contains(name))
}
