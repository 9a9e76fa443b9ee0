//! Users of `portcullis idp` whose claims are configured.

use std::path::Path;

use anyhow::Context as _;
use portcullis_config::{parse_values, plan::file_content};
use portcullis_devidp::UserSettings;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Reads the file of `--users`. Whether the claims are allowed is checked when the server starts.
/// Fails when the file cannot be read, or a value has the wrong type.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<UserSettings>> {
    let shown = path.display();
    let bytes =
        file_content(path).with_context(|| format!("--users: the file {shown} cannot be read"))?;
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("--users: the file {shown} is not UTF-8"))?;
    parse(path, &text).context("--users")
}

fn parse(path: &Path, text: &str) -> anyhow::Result<Vec<UserSettings>> {
    let file: UsersFile = parse_values(path, text)?;
    let users = file.user.into_iter().map(|entry| UserSettings {
        name: entry.name,
        claims: entry.claims,
    });
    Ok(users.collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersFile {
    user: Vec<UserEntry>,
}

/// `[[user]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserEntry {
    /// The user name.
    name: String,
    /// The claims about the user. Default: none.
    #[serde(default)]
    claims: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// K1: claims have the types of the file.
    #[test]
    fn claims_are_parsed() {
        let text = "[[user]]\nname = 'alice'\nclaims = { groups = ['a', 'b'], id = 7, ok = true }\n[[user]]\nname = 'bob'";
        let users = parse(Path::new("users.toml"), text).unwrap();
        let [alice, bob] = users.as_slice() else {
            panic!("{users:?}");
        };
        let claims = json!({ "groups": ["a", "b"], "id": 7, "ok": true });
        assert_eq!(alice.name, "alice");
        assert_eq!(Value::Object(alice.claims.clone()), claims);
        assert_eq!(*bob, UserSettings::new("bob"));
    }

    #[test]
    fn errors_name_line_and_key() {
        for (text, expected) in [
            ("[[user]]\nname = 3", "users.toml:2: user[0].name"),
            (
                "[[user]]\nname = 'a'\nclaim = {}",
                "users.toml:3: user[0].claim is not a known key; did you mean `claims`?",
            ),
        ] {
            let error = format!("{:#}", parse(Path::new("users.toml"), text).unwrap_err());
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
