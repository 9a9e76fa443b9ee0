use std::{borrow::Cow, fmt, sync::OnceLock};

use serde_json::{Map, Value};

/// What an issuer says of whom a token speaks for: claims, kept as the payload that they came in until somebody asks.
///
/// Most tokens are never asked for more than was read of them when they were verified.
#[derive(Default)]
pub(crate) struct Said {
    payload: String,
    claims: OnceLock<Box<Map<String, Value>>>,
}

impl Said {
    /// The claims in a JSON object.
    pub(crate) fn in_object(payload: Vec<u8>) -> Self {
        // What is no text is no JSON either.
        Self { payload: String::from_utf8(payload).unwrap_or_default(), claims: OnceLock::new() }
    }

    pub(crate) fn claims(&self) -> &Map<String, Value> {
        // A payload that was verified has been parsed before. One that was not has no claims that could allow anything.
        self.claims.get_or_init(|| Box::new(serde_json::from_str(&self.payload).unwrap_or_default()))
    }

    pub(crate) fn claim(&self, path: &str) -> Option<&Value> {
        let Some(pointer) = path.strip_prefix('/') else { return self.claims().get(path) };
        let (name, rest) = pointer.find('/').map_or((pointer, ""), |at| pointer.split_at(at));
        let name = match name.contains('~') {
            true => Cow::Owned(name.replace("~1", "/").replace("~0", "~")),
            false => Cow::Borrowed(name),
        };
        self.claims().get(&*name)?.pointer(rest)
    }
}

/// Shows nothing: claims are about people.
impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Said").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said() -> Said {
        let payload = br#"{"sub":"alice","groups":["a","b"],"realm_access":{"roles":["admin"],"a/b":1,"m~n":2},"":3,
            "https://example.com/tenant":"t","x/y":{"z":4}}"#;
        Said::in_object(payload.to_vec())
    }

    /// C14: a claim is found by its name, whatever stands in the name.
    #[test]
    fn claims_are_found_by_name() {
        let said = said();
        assert_eq!(said.claim("sub"), Some(&json!("alice")));
        assert_eq!(said.claim("https://example.com/tenant"), Some(&json!("t")));
        assert_eq!(said.claim(""), Some(&json!(3)));
        for absent in ["Sub", "sub ", "roles", "realm_access.roles", "groups/0"] {
            assert_eq!(said.claim(absent), None, "{absent}");
        }
    }

    /// C14: that goes for few claims and for many.
    #[test]
    fn claims_are_found_among_many() {
        for many in [1, 32, 300] {
            let claims: Map<_, _> = (0..many).map(|number| (format!("claim-{number}"), json!(number))).collect();
            let said = Said::in_object(serde_json::to_vec(&claims).unwrap());
            for number in 0..many {
                assert_eq!(said.claim(&format!("claim-{number}")), Some(&json!(number)), "of {many}");
                assert_eq!(said.claim(&format!("/claim-{number}")), Some(&json!(number)), "of {many}");
            }
            assert_eq!(said.claim(&format!("claim-{many}")), None, "of {many}");
        }
    }

    /// C14: or by a JSON pointer, with its escapes.
    #[test]
    fn claims_are_found_by_pointer() {
        let said = said();
        assert_eq!(said.claim("/sub"), Some(&json!("alice")));
        assert_eq!(said.claim("/realm_access/roles"), Some(&json!(["admin"])));
        assert_eq!(said.claim("/realm_access/roles/0"), Some(&json!("admin")));
        assert_eq!(said.claim("/realm_access/a~1b"), Some(&json!(1)));
        assert_eq!(said.claim("/realm_access/m~0n"), Some(&json!(2)));
        assert_eq!(said.claim("/x~1y/z"), Some(&json!(4)));
        assert_eq!(said.claim("/https:~1~1example.com~1tenant"), Some(&json!("t")));
        assert_eq!(said.claim("/"), Some(&json!(3)));
        for absent in ["/roles", "/groups/2", "/groups/-", "/groups/00", "/x/y/z", "/sub/", "//"] {
            assert_eq!(said.claim(absent), None, "{absent}");
        }
    }

    /// J2: claims are about people, and not shown.
    #[test]
    fn claims_are_not_shown() {
        assert_eq!(format!("{:?}", said()), "Said { .. }");
    }

    /// C14: a payload that is not an object has no claims, so that no rule is met by it.
    #[test]
    fn rubbish_has_no_claims() {
        for payload in [b"".as_slice(), b"[]", b"{", b"7", b"{\"sub\":\"\xff\"}"] {
            assert!(Said::in_object(payload.to_vec()).claims().is_empty(), "{payload:?}");
        }
    }
}
