//! [`JsonClaims`]: the claims of a token as JSON, parsed on first access.

use std::{borrow::Cow, fmt, sync::OnceLock};

use serde_json::{Map, Value};

/// The claims of a token. The JSON is parsed on first access, because most tokens need only the
/// claims that the verifier has read.
#[derive(Default)]
pub(crate) struct JsonClaims {
    json: String,
    parsed: OnceLock<Box<Map<String, Value>>>,
}

impl JsonClaims {
    /// Creates the claims from a JSON object. Other input gives no claims.
    pub(crate) fn new(json: Vec<u8>) -> Self {
        Self {
            json: String::from_utf8(json).unwrap_or_default(),
            parsed: OnceLock::new(),
        }
    }

    pub(crate) fn all(&self) -> &Map<String, Value> {
        // The verifier has parsed the JSON before. If parsing fails, there are no claims, and every
        // claim rule denies.
        self.parsed
            .get_or_init(|| Box::new(serde_json::from_str(&self.json).unwrap_or_default()))
    }

    /// Returns a claim by its name or, if `path` starts with `/`, by a JSON pointer (RFC 6901).
    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        claim_at(self.all(), path)
    }
}

/// Returns a claim by its name or, if `path` starts with `/`, by a JSON pointer (RFC 6901) into the
/// claims.
pub fn claim_at<'c>(claims: &'c Map<String, Value>, path: &str) -> Option<&'c Value> {
    let Some(pointer) = path.strip_prefix('/') else {
        return claims.get(path);
    };
    let (name, rest) = pointer
        .find('/')
        .map_or((pointer, ""), |at| pointer.split_at(at));
    let name = if name.contains('~') {
        Cow::Owned(name.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(name)
    };
    claims.get(&*name)?.pointer(rest)
}

/// Returns whether a text can name a claim for [`claim_at`]: it is not empty, and if it starts with
/// `/`, each `~` in it is the start of `~0` or `~1` (RFC 6901 section 3).
pub fn is_claim_path(path: &str) -> bool {
    let mut after_tildes = path.split('~').skip(1);
    !path.is_empty()
        && (!path.starts_with('/') || after_tildes.all(|after| after.starts_with(['0', '1'])))
}

/// Prints no claims, because they describe people.
impl fmt::Debug for JsonClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonClaims").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims() -> JsonClaims {
        let json = br#"{"sub":"alice","groups":["a","b"],"realm_access":{"roles":["admin"],"a/b":1,"m~n":2},"":3,
            "https://example.com/tenant":"t","x/y":{"z":4}}"#;
        JsonClaims::new(json.to_vec())
    }

    /// C14: a claim is found by its exact name. Names may have any characters.
    #[test]
    fn claims_are_found_by_name() {
        let claims = claims();
        assert_eq!(claims.get("sub"), Some(&json!("alice")));
        assert_eq!(claims.get("https://example.com/tenant"), Some(&json!("t")));
        assert_eq!(claims.get(""), Some(&json!(3)));
        for absent in ["Sub", "sub ", "roles", "realm_access.roles", "groups/0"] {
            assert_eq!(claims.get(absent), None, "{absent}");
        }
    }

    /// C14: a claim is found among few and among many.
    #[test]
    fn claims_are_found_among_many() {
        for count in [1, 32, 300] {
            let json: Map<_, _> = (0..count)
                .map(|number| (format!("claim-{number}"), json!(number)))
                .collect();
            let claims = JsonClaims::new(serde_json::to_vec(&json).unwrap());
            for number in 0..count {
                assert_eq!(
                    claims.get(&format!("claim-{number}")),
                    Some(&json!(number)),
                    "of {count}"
                );
                assert_eq!(
                    claims.get(&format!("/claim-{number}")),
                    Some(&json!(number)),
                    "of {count}"
                );
            }
            assert_eq!(claims.get(&format!("claim-{count}")), None, "of {count}");
        }
    }

    /// C14: a name can have any character, and a pointer needs valid escapes.
    #[test]
    fn claim_paths() {
        for path in ["a", "a~2", "/", "/a/b", "/a~1b/~0c"] {
            assert!(is_claim_path(path), "{path}");
        }
        for path in ["", "/a~2", "/a~", "/~/a"] {
            assert!(!is_claim_path(path), "{path}");
        }
    }

    /// C14: a claim is found by a JSON pointer with escapes.
    #[test]
    fn claims_are_found_by_pointer() {
        let claims = claims();
        assert_eq!(claims.get("/sub"), Some(&json!("alice")));
        assert_eq!(claims.get("/realm_access/roles"), Some(&json!(["admin"])));
        assert_eq!(claims.get("/realm_access/roles/0"), Some(&json!("admin")));
        assert_eq!(claims.get("/realm_access/a~1b"), Some(&json!(1)));
        assert_eq!(claims.get("/realm_access/m~0n"), Some(&json!(2)));
        assert_eq!(claims.get("/x~1y/z"), Some(&json!(4)));
        assert_eq!(
            claims.get("/https:~1~1example.com~1tenant"),
            Some(&json!("t"))
        );
        assert_eq!(claims.get("/"), Some(&json!(3)));
        for absent in [
            "/roles",
            "/groups/2",
            "/groups/-",
            "/groups/00",
            "/x/y/z",
            "/sub/",
            "//",
        ] {
            assert_eq!(claims.get(absent), None, "{absent}");
        }
    }

    /// J2: `Debug` does not print claims.
    #[test]
    fn debug_prints_no_claims() {
        assert_eq!(format!("{:?}", claims()), "JsonClaims { .. }");
    }

    /// C14: JSON that is not an object gives no claims, so no claim rule is satisfied.
    #[test]
    fn other_json_has_no_claims() {
        for json in [b"".as_slice(), b"[]", b"{", b"7", b"{\"sub\":\"\xff\"}"] {
            assert!(JsonClaims::new(json.to_vec()).all().is_empty(), "{json:?}");
        }
    }
}
