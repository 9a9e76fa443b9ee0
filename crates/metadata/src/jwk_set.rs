use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    DocumentError,
    json::{Members, ParsedObject},
};

/// A JWK set (RFC 7517 section 5), public members only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwkSet {
    /// The well-formed keys, in the order of the document.
    pub keys: Vec<Jwk>,
    /// What became of the others.
    pub rejected: Vec<RejectedJwk>,
}

/// One public key (RFC 7517 section 4), as text: nothing is decoded and no use judged.
///
/// Private members (`d`, `p`, `q`, `dp`, `dq`, `qi`, `oth`) of the document are never kept, nor are
/// certificates and URLs (`x5c`, `x5u`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwk {
    /// The key type: `RSA`, `EC`, `OKP`.
    pub kty: String,
    /// The key's name.
    pub kid: Option<String>,
    /// The one algorithm that it is for.
    pub alg: Option<String>,
    /// What it is for: `sig` or `enc`. The member is named `use`.
    pub use_: Option<String>,
    /// What it may do: `verify` and others.
    pub key_ops: Option<Vec<String>>,
    /// The curve.
    pub crv: Option<String>,
    /// The RSA modulus.
    pub n: Option<String>,
    /// The RSA exponent.
    pub e: Option<String>,
    /// The x coordinate, or the whole public key of an `OKP`.
    pub x: Option<String>,
    /// The y coordinate.
    pub y: Option<String>,
}

/// A member of a set that is no usable public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedJwk {
    /// Its place in the `keys` array, counted from 0.
    pub index: usize,
    /// Its name, where it has one.
    pub kid: Option<String>,
    /// What is wrong with it.
    pub reason: JwkRejection,
}

/// What is wrong with a member of a JWK set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwkRejection {
    /// It is no JSON object, a member is there twice, missing or of the wrong type.
    #[error("the key is malformed: {reason}")]
    Malformed {
        /// What exactly.
        reason: DocumentError,
    },
    /// It is a symmetric key, which has no place in a published set.
    #[error("the key is symmetric")]
    Symmetric,
}

impl JwkRejection {
    /// A stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "jwk.malformed",
            Self::Symmetric => "jwk.symmetric",
        }
    }
}

impl JwkSet {
    /// Reads a set. A malformed or symmetric key costs only itself. Bounds on the document's size and on
    /// the number of keys are the caller's.
    ///
    /// # Errors
    /// When the bytes are not one JSON object, or `keys` is missing, there twice or no array.
    pub fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        struct RawSet {
            keys: Option<Vec<ParsedObject>>,
        }

        // Serde would read an array as a struct, too.
        if document.trim_ascii_start().first().is_some_and(|byte| *byte == b'[') {
            return Err(DocumentError::NotAnObject);
        }
        let set: RawSet = serde_json::from_slice(document).map_err(|error| {
            if error.is_data() {
                DocumentError::WrongType { member: "keys", expected: "one array" }
            } else {
                DocumentError::NotJson
            }
        })?;
        let mut parsed = Self::default();
        for (index, key) in set.keys.ok_or(DocumentError::Missing { member: "keys" })?.into_iter().enumerate() {
            parsed.add(index, key);
        }
        Ok(parsed)
    }

    /// Writes the set of the well-formed keys.
    pub fn to_json(&self) -> Vec<u8> {
        json!({ "keys": self.keys.iter().map(Jwk::to_value).collect::<Vec<_>>() }).to_string().into_bytes()
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
        let kid = members.get("kid").and_then(Value::as_str).map(str::to_owned);
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
        Self::read(&mut Members::of(members)).map_err(|reason| JwkRejection::Malformed { reason })
    }

    fn read(members: &mut Members) -> Result<Self, DocumentError> {
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

    /// The key as a JSON object.
    pub fn to_value(&self) -> Value {
        let texts = [
            ("kty", Some(&self.kty)),
            ("kid", self.kid.as_ref()),
            ("alg", self.alg.as_ref()),
            ("use", self.use_.as_ref()),
            ("crv", self.crv.as_ref()),
            ("n", self.n.as_ref()),
            ("e", self.e.as_ref()),
            ("x", self.x.as_ref()),
            ("y", self.y.as_ref()),
        ];
        let mut object: Map<String, Value> = texts
            .into_iter()
            .filter_map(|(member, text)| Some((member.to_owned(), Value::from(text?.as_str()))))
            .collect();
        if let Some(operations) = &self.key_ops {
            object.insert("key_ops".to_owned(), operations.as_slice().into());
        }
        Value::Object(object)
    }
}
