use anyhow::bail;
use serde_json::{Map, Value};

/// Parses the values of `--claim`: `NAME=VALUE`, where the value is JSON, otherwise a string. Fails
/// if a value has no `=` or a name occurs twice.
pub(super) fn parse(claims: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut parsed = Map::new();
    for claim in claims {
        let Some((name, value)) = claim.split_once('=') else {
            bail!(
                "--claim: {claim:?} has no `=`: write NAME=VALUE, like groups='[\"admins\"]' or level=3"
            );
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        if parsed.insert(name.to_owned(), value).is_some() {
            bail!("--claim: {name:?} is given twice: write several values as a JSON array");
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// K1: a value that is not JSON is a string.
    #[test]
    fn values_are_json_or_strings() {
        let claims = [
            "groups=[\"a\",\"b\"]",
            "level=3",
            "team=core",
            "text=\"3\"",
            "url=a=b",
            "open=[",
            "empty=",
        ];
        let parsed = parse(&claims.map(str::to_owned)).unwrap();
        let expected = json!({
            "groups": ["a", "b"], "level": 3, "team": "core", "text": "3", "url": "a=b", "open": "[", "empty": "",
        });
        assert_eq!(Value::Object(parsed), expected);
    }

    #[test]
    fn invalid_claims_are_rejected_with_the_fix() {
        for (claims, message) in [
            (&["groups"][..], "write NAME=VALUE"),
            (&["a=1", "a=2"], "as a JSON array"),
        ] {
            let claims: Vec<_> = claims.iter().map(|claim| (*claim).to_owned()).collect();
            assert!(parse(&claims).unwrap_err().to_string().contains(message));
        }
    }
}
