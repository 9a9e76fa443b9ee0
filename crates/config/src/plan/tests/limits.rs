//! `docs/use/limits.md` matches the code: the default and the range of each row apply.

use std::time::Duration;

use serde_json::Value;

use super::{GOOD, check};

const PAGE: &str = include_str!("../../../../../docs/use/limits.md");
/// Keys of these sections that are not limits of the first table: the page has the rates in
/// another.
const OTHER_KEYS: &[&str] = &[
    "limits.rejected_per_address",
    "session.ended_status",
    "session.keys",
    "session.without_state",
];

struct Row {
    key: &'static str,
    default: &'static str,
    low: &'static str,
    high: &'static str,
}

/// Returns the rows of the table of settings.
fn rows() -> Vec<Row> {
    let table = PAGE.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, key, default, range, description, _] = cells[..] else {
            panic!("not four cells: {line}")
        };
        let (low, high) = range
            .split_once(" to ")
            .unwrap_or_else(|| panic!("no range: {line}"));
        let bare = |cell: &'static str| cell.trim_matches('`');
        assert!(description.len() > 10, "{line}");
        Row {
            key: bare(key),
            default: bare(default),
            low: bare(low),
            high: bare(high),
        }
    })
    .collect()
}

fn value_of<'a>(config: &'a Value, key: &str) -> &'a Value {
    config
        .pointer(&format!("/{}", key.replace('.', "/")))
        .unwrap_or_else(|| panic!("there is no key {key}"))
}

fn defaults() -> Value {
    serde_json::to_value(crate::from_text(GOOD).unwrap()).unwrap()
}

/// Checks a value. Other limits that it requires are set, too.
fn check_value(key: &str, value: &str) -> Result<(), String> {
    let (section, name) = key.split_once('.').unwrap();
    let other_limit = if key == "limits.max_body" {
        "body_budget = 68719476736\n"
    } else {
        ""
    };
    check(&format!(
        "{GOOD}\n[{section}]\n{other_limit}{name} = {value}"
    ))
    .map(drop)
    .map_err(|error| format!("{error:#}"))
}

/// Returns the values just outside a range.
fn outside(low: &str, high: &str) -> [String; 2] {
    let span = |text: &str| humantime::parse_duration(text.trim_matches('"')).unwrap();
    if !low.starts_with('"') {
        let number = |text: &str| text.parse::<u64>().unwrap();
        return [
            (number(low) - 1).to_string(),
            (number(high) + 1).to_string(),
        ];
    }
    let below = span(low) - Duration::from_millis(1);
    let above = span(high) + Duration::from_secs(1);
    [below, above].map(|span| format!("\"{}\"", humantime::format_duration(span)))
}

/// E9, F4: each limit's default is the documented one.
#[test]
fn the_documented_defaults_are_used() {
    let defaults = defaults();
    for Row { key, default, .. } in rows() {
        // The default depends on the value of another key.
        if let Some(other) = default.split('`').find(|part| part.contains('.')) {
            value_of(&defaults, other);
            let (section, name) = key.split_once('.').unwrap();
            assert_eq!(defaults[section].get(name), None, "{key}");
            continue;
        }
        let documented = default.trim_matches('"');
        let used = match value_of(&defaults, key) {
            Value::String(text) => humantime::parse_duration(text).ok(),
            number => {
                assert_eq!(number.to_string(), documented, "{key}");
                continue;
            }
        };
        assert_eq!(used, humantime::parse_duration(documented).ok(), "{key}");
    }
}

/// E9, F4: each limit's range is the documented one, and the error for a value outside names the
/// limit.
#[test]
fn the_documented_ranges_apply() {
    let defaults = defaults();
    for Row { key, low, high, .. } in rows() {
        let low = if low.contains('.') {
            value_of(&defaults, low).to_string()
        } else {
            low.to_owned()
        };
        for inside in [&*low, high] {
            assert_eq!(check_value(key, inside), Ok(()), "{key} = {inside}");
        }
        for outside in outside(&low, high) {
            let error = check_value(key, &outside).expect_err(&format!("{key} = {outside}"));
            assert!(error.contains(key), "{key} = {outside}: {error}");
        }
    }
}

/// Every limit that can be set is documented.
#[test]
fn all_limits_are_documented() {
    let defaults = defaults();
    for section in ["limits", "session"] {
        for name in value_of(&defaults, section).as_object().unwrap().keys() {
            let key = format!("{section}.{name}");
            assert!(
                OTHER_KEYS.contains(&&*key) || rows().iter().any(|row| row.key == key),
                "docs/use/limits.md lacks a row for `{key}`"
            );
        }
    }
}
