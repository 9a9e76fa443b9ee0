//! [`JwkSet`]: the published keys of an issuer.

use serde::Deserialize;
use serde_json::{Map, Value, error::Category, json};

use crate::json::{DocumentError, Members, ParsedObject};

/// A JWK set (RFC 7517 section 5) without private members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwkSet {
    /// The well-formed public keys, in document order.
    pub keys: Vec<Jwk>,
    /// The keys that were rejected.
    pub rejected: Vec<RejectedJwk>,
}

/// A public key (RFC 7517 section 4). Members are strings: they are not decoded, and the key's use
/// is not checked.
///
/// A key with a private member is rejected, because anyone who reads the set can sign with it.
/// Certificates and their URLs (`x5c`, `x5u`) are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwk {
    /// The key type: `RSA`, `EC`, `OKP`.
    pub kty: String,
    /// The key identifier.
    pub kid: Option<String>,
    /// The only algorithm to use the key with.
    pub alg: Option<String>,
    /// The intended use, `sig` or `enc`. The member is named `use`.
    pub use_: Option<String>,
    /// The permitted operations, such as `verify`.
    pub key_ops: Option<Vec<String>>,
    /// The curve.
    pub crv: Option<String>,
    /// The RSA modulus.
    pub n: Option<String>,
    /// The RSA exponent.
    pub e: Option<String>,
    /// The x coordinate, or the public key of type `OKP`.
    pub x: Option<String>,
    /// The y coordinate.
    pub y: Option<String>,
}

/// The members of private keys (RFC 7518 sections 6.2.2 and 6.3.2, RFC 8037 section 2).
const PRIVATE_MEMBERS: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "oth"];

/// An entry of a set that is not a usable public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedJwk {
    /// The index in the `keys` array, from 0.
    pub index: usize,
    /// The key identifier, if present.
    pub kid: Option<String>,
    /// Why the key was rejected.
    pub reason: JwkRejection,
}

/// Why an entry of a JWK set was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwkRejection {
    /// The key is not a JSON object, or a member is duplicated, missing or of the wrong type.
    #[error("the key is malformed: {reason}")]
    Malformed {
        /// The cause.
        reason: DocumentError,
    },
    /// The key is symmetric. A published set must not contain symmetric keys.
    #[error("the key is symmetric")]
    Symmetric,
    /// The key has a private member (`d`, `p`, `q`, `dp`, `dq`, `qi`, `oth`), so it is compromised
    /// (RFC 7517 section 9.2).
    #[error("the key contains private members")]
    Private,
}

impl JwkRejection {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "jwk.malformed",
            Self::Symmetric => "jwk.symmetric",
            Self::Private => "jwk.private",
        }
    }
}

impl JwkSet {
    /// Parses a set. Malformed, symmetric and private keys are rejected individually. The caller
    /// limits the document's size and the number of keys.
    ///
    /// # Errors
    /// Fails if the document is not a JSON object, or `keys` is missing, duplicated or not an
    /// array.
    pub fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        struct RawSet {
            keys: Option<Vec<ParsedObject>>,
        }

        // Serde also deserializes an array as a struct.
        let is_object = document.trim_ascii_start().first() == Some(&b'{');
        let set: RawSet =
            serde_json::from_slice(document).map_err(|error| match error.classify() {
                Category::Data if is_object => DocumentError::WrongType {
                    member: "keys",
                    expected: "a single array",
                },
                Category::Data => DocumentError::NotAnObject,
                Category::Syntax | Category::Eof | Category::Io => DocumentError::NotJson,
            })?;
        if !is_object {
            return Err(DocumentError::NotAnObject);
        }
        let mut parsed = Self::default();
        for (index, key) in set
            .keys
            .ok_or(DocumentError::Missing { member: "keys" })?
            .into_iter()
            .enumerate()
        {
            parsed.add(index, key);
        }
        Ok(parsed)
    }

    /// Serializes the well-formed keys as a set.
    pub fn to_json(&self) -> Vec<u8> {
        json!({ "keys": self.keys.iter().map(Jwk::to_value).collect::<Vec<_>>() })
            .to_string()
            .into_bytes()
    }

    fn add(&mut self, index: usize, key: ParsedObject) {
        let members = match key.into_members() {
            Ok(members) => members,
            Err(reason) => {
                return self.rejected.push(RejectedJwk {
                    index,
                    kid: None,
                    reason: JwkRejection::Malformed { reason },
                });
            }
        };
        let kid = members
            .get("kid")
            .and_then(Value::as_str)
            .map(str::to_owned);
        match Jwk::from_members(members) {
            Ok(key) => self.keys.push(key),
            Err(reason) => self.rejected.push(RejectedJwk { index, kid, reason }),
        }
    }
}

impl Jwk {
    fn from_members(members: Map<String, Value>) -> Result<Self, JwkRejection> {
        if members.contains_key("k") || members.get("kty").and_then(Value::as_str) == Some("oct") {
            return Err(JwkRejection::Symmetric);
        }
        if PRIVATE_MEMBERS
            .iter()
            .any(|member| members.get(*member).is_some_and(|value| !value.is_null()))
        {
            return Err(JwkRejection::Private);
        }
        Self::from_public_members(&mut Members::new(members))
            .map_err(|reason| JwkRejection::Malformed { reason })
    }

    fn from_public_members(members: &mut Members) -> Result<Self, DocumentError> {
        Ok(Self {
            kty: members.required_string("kty")?,
            kid: members.string("kid")?,
            alg: members.string("alg")?,
            use_: members.string("use")?,
            key_ops: members.strings("key_ops")?,
            crv: members.string("crv")?,
            n: members.string("n")?,
            e: members.string("e")?,
            x: members.string("x")?,
            y: members.string("y")?,
        })
    }

    /// Returns the key as a JSON object.
    pub fn to_value(&self) -> Value {
        let Self {
            kty,
            kid,
            alg,
            use_,
            key_ops,
            crv,
            n,
            e,
            x,
            y,
        } = self;
        let strings = [
            ("kty", Some(kty)),
            ("kid", kid.as_ref()),
            ("alg", alg.as_ref()),
            ("use", use_.as_ref()),
            ("crv", crv.as_ref()),
            ("n", n.as_ref()),
            ("e", e.as_ref()),
            ("x", x.as_ref()),
            ("y", y.as_ref()),
        ];
        let mut object: Map<String, Value> = strings
            .into_iter()
            .filter_map(|(member, value)| Some((member.to_owned(), Value::from(value?.as_str()))))
            .collect();
        if let Some(operations) = key_ops {
            object.insert("key_ops".to_owned(), operations.as_slice().into());
        }
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};

    use super::*;
    use crate::json::arbitrary;

    fn parse(document: &str) -> Result<JwkSet, DocumentError> {
        JwkSet::parse(document.as_bytes())
    }

    /// C2: public members are kept as strings, and certificates are dropped.
    #[test]
    fn public_members_are_kept() {
        let set = parse(
            r#"{"keys":[{"kty":"RSA","kid":"1","use":"sig","alg":"RS256","key_ops":["verify"],"n":"n","e":"AQAB",
                "d":null,"x5c":["cert"]},{"kty":"EC","crv":"P-256","x":"x","y":"y"}],"unknown":1}"#,
        )
        .unwrap();
        assert_eq!(set.keys.len(), 2);
        assert_eq!(set.rejected, []);
        assert_eq!(set.keys[0].kid.as_deref(), Some("1"));
        assert_eq!(set.keys[0].use_.as_deref(), Some("sig"));
        assert_eq!(set.keys[0].key_ops.as_deref().unwrap(), ["verify"]);
        assert_eq!(set.keys[1].crv.as_deref(), Some("P-256"));
        assert!(!String::from_utf8(set.to_json()).unwrap().contains("cert"));
    }

    /// C2: a key with a private member is rejected, and the private member is dropped.
    #[test]
    fn published_private_keys_are_rejected() {
        for private in ["d", "p", "q", "dp", "dq", "qi", "oth"] {
            for value in [json!("hush"), json!(["hush"]), json!("")] {
                let mut key = json!({"kty": "RSA", "kid": "1", "n": "n", "e": "AQAB"});
                key[private] = value;
                let set =
                    parse(&json!({"keys": [key, {"kty": "EC", "kid": "2"}]}).to_string()).unwrap();
                assert_eq!(
                    set.keys
                        .iter()
                        .map(|key| key.kid.as_deref())
                        .collect::<Vec<_>>(),
                    [Some("2")]
                );
                let rejected = RejectedJwk {
                    index: 0,
                    kid: Some("1".to_owned()),
                    reason: JwkRejection::Private,
                };
                assert_eq!(set.rejected, [rejected], "{private}");
                assert!(!format!("{set:?}").contains("hush"));
                assert!(!String::from_utf8(set.to_json()).unwrap().contains("hush"));
            }
        }
    }

    /// C2, C10: an invalid key does not affect the other keys.
    #[test]
    fn invalid_keys_are_rejected_individually() {
        let set = parse(
            r#"{"keys":[5,null,"a",[],{"kid":"a"},{"kty":5,"kid":"b"},{"kty":"RSA","kid":"c","n":[]},
                {"kty":"RSA","kid":"d","kid":"e"},{"kty":"oct","kid":"f","k":"hush"},{"kty":"oct"},{"kty":"RSA","k":"hush"},
                {"kty":"OKP","kid":"good","crv":"Ed25519","x":"x"}]}"#,
        )
        .unwrap();
        assert_eq!(set.keys.len(), 1);
        assert_eq!(set.keys[0].kid.as_deref(), Some("good"));

        let codes: Vec<_> = set
            .rejected
            .iter()
            .map(|key| (key.index, key.kid.as_deref(), key.reason.code()))
            .collect();
        assert_eq!(
            codes,
            [
                (0, None, "jwk.malformed"),
                (1, None, "jwk.malformed"),
                (2, None, "jwk.malformed"),
                (3, None, "jwk.malformed"),
                (4, Some("a"), "jwk.malformed"),
                (5, Some("b"), "jwk.malformed"),
                (6, Some("c"), "jwk.malformed"),
                (7, None, "jwk.malformed"),
                (8, Some("f"), "jwk.symmetric"),
                (9, None, "jwk.symmetric"),
                (10, None, "jwk.symmetric"),
            ]
        );
    }

    /// C10: a document that is not a key set is rejected.
    #[test]
    fn other_documents_are_rejected() {
        for (document, code) in [
            ("", "document.not_json"),
            ("<html>", "document.not_json"),
            ("[]", "document.not_an_object"),
            (" [[]]", "document.not_an_object"),
            ("{}", "document.member_missing"),
            (r#"{"keys":null}"#, "document.member_missing"),
            (r#"{"keys":{}}"#, "document.member_type"),
            (r#"{"keys":[],"keys":[]}"#, "document.member_type"),
            ("5", "document.not_an_object"),
        ] {
            assert_eq!(parse(document).unwrap_err().code(), code, "{document}");
        }
        assert_eq!(parse(r#"{"keys":[]}"#), Ok(JwkSet::default()));
    }

    proptest! {
        /// C2: any set round-trips.
        #[test]
        fn sets_round_trip(
            kty in "RSA|EC|OKP|.{1,5}",
            kid: Option<String>,
            use_: Option<String>,
            key_ops in option::of(arbitrary::entries()),
            n: Option<String>,
        ) {
            prop_assume!(kty != "oct");
            let key = Jwk { kty, kid, use_, key_ops, n, alg: None, crv: None, e: None, x: None, y: None };
            let built = JwkSet { keys: vec![key], rejected: Vec::new() };
            prop_assert_eq!(JwkSet::parse(&built.to_json()), Ok(built));
        }
    }
}
