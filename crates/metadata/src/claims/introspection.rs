//! [`IntrospectionResponse`]: a token's state as its authorization server reports it.

use serde_json::{Map, Value};

use crate::{
    identifier::{Audience, Scopes},
    json::{DocumentError, Members, ObjectBuilder},
    time::UnixTime,
};

/// An introspection response (RFC 7662 section 2.2).
///
/// [`parse`](Self::parse) checks types only. The caller checks the dates, the issuer and the
/// audience, because an authorization server can report a token as active that was issued for
/// another resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntrospectionResponse {
    /// Whether the token is active. If not, all other members are ignored and the fields are empty.
    pub active: bool,
    /// The audience.
    pub aud: Option<Audience>,
    /// The client to which the token was issued.
    pub client_id: Option<String>,
    /// The granted scopes, parsed like
    /// [`AccessTokenClaims::scope`](crate::AccessTokenClaims::scope). `None` if the response has no
    /// scope member; empty if the token grants nothing.
    pub scope: Option<Scopes>,
    /// The expiration time.
    pub exp: Option<UnixTime>,
    /// The time before which the token is not valid.
    pub nbf: Option<UnixTime>,
    /// The time of issue.
    pub iat: Option<UnixTime>,
    /// The issuer.
    pub iss: Option<String>,
    /// The subject.
    pub sub: Option<String>,
    /// The human-readable name of the subject.
    pub username: Option<String>,
    /// The token type as in a token response: `Bearer`, `DPoP`.
    pub token_type: Option<String>,
    /// The token identifier.
    pub jti: Option<String>,
    /// The authorized party: the client in tokens of OpenID providers.
    pub azp: Option<String>,
    /// The confirmation member, which binds the token to a key (RFC 7800). It is not checked.
    pub cnf: Option<Value>,
    /// All other members.
    pub extra: Map<String, Value>,
}

impl IntrospectionResponse {
    /// Parses a response body. A member that is `null` counts as missing.
    ///
    /// # Errors
    /// Fails if the body is not a JSON object without duplicate members, `active` is missing or not
    /// a boolean, or, in an active response, a known member has the wrong type, is not a valid
    /// date, or contains a malformed scope name. `null` has the wrong type for `active` and the
    /// scope.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        let active = members
            .boolean("active")?
            .ok_or(DocumentError::Missing { member: "active" })?;
        if !active {
            return Ok(Self::default());
        }
        Ok(Self {
            active,
            aud: audience(&mut members)?,
            client_id: members.string("client_id")?,
            scope: scope(&mut members)?,
            exp: members.numeric_date("exp")?,
            nbf: members.numeric_date("nbf")?,
            iat: members.numeric_date("iat")?,
            iss: members.string("iss")?,
            sub: members.string("sub")?,
            username: members.string("username")?,
            token_type: members.string("token_type")?,
            jti: members.string("jti")?,
            azp: members.string("azp")?,
            cnf: members.value("cnf"),
            extra: members.remaining(),
        })
    }

    /// Serializes the response body: `{"active":false}` if the token is not active.
    pub fn to_json(&self) -> Vec<u8> {
        let Self {
            active,
            aud,
            client_id,
            scope,
            exp,
            nbf,
            iat,
            iss,
            sub,
            username,
            token_type,
            jti,
            azp,
            cnf,
            extra,
        } = self;
        if !*active {
            return br#"{"active":false}"#.to_vec();
        }
        let mut object = ObjectBuilder::new(extra);
        object.boolean("active", Some(true));
        object.value("aud", aud.as_ref().map(Audience::to_value));
        object.string("client_id", client_id.as_deref());
        object.string("scope", scope.as_ref().map(Scopes::as_str));
        object.numeric_date("exp", *exp);
        object.numeric_date("nbf", *nbf);
        object.numeric_date("iat", *iat);
        object.string("iss", iss.as_deref());
        object.string("sub", sub.as_deref());
        object.string("username", username.as_deref());
        object.string("token_type", token_type.as_deref());
        object.string("jti", jti.as_deref());
        object.string("azp", azp.as_deref());
        object.value("cnf", cnf.clone());
        object.into_json()
    }
}

fn audience(members: &mut Members) -> Result<Option<Audience>, DocumentError> {
    let expected = DocumentError::WrongType {
        member: "aud",
        expected: "a string or an array",
    };
    members
        .value("aud")
        .map(|value| Audience::from_value(&value).ok_or(expected))
        .transpose()
}

/// Takes the scopes from `scope` or, if it is missing, from `scp`. Returns `None` if both are
/// missing, which differs from an empty list. `null` has the wrong type, because it could mean
/// either.
fn scope(members: &mut Members) -> Result<Option<Scopes>, DocumentError> {
    let Some(member) = ["scope", "scp"]
        .into_iter()
        .find(|member| members.contains(member))
    else {
        return Ok(None);
    };
    let wrong_type = DocumentError::WrongType {
        member,
        expected: "a string or an array of strings",
    };
    let scopes = match members.value(member) {
        Some(Value::String(names)) => Scopes::parse(&names),
        Some(Value::Array(entries)) => {
            let names: Option<Vec<&str>> = entries.iter().map(Value::as_str).collect();
            Scopes::from_names(names.ok_or(wrong_type)?)
        }
        None | Some(_) => return Err(wrong_type),
    };
    scopes
        .map(Some)
        .map_err(|_| DocumentError::Malformed { member })
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};
    use serde_json::json;

    use super::*;
    use crate::json::arbitrary;

    fn parse(body: &str) -> Result<IntrospectionResponse, DocumentError> {
        IntrospectionResponse::parse(body.as_bytes())
    }

    /// Each member is parsed into its field.
    #[test]
    fn an_active_response_is_parsed() {
        let response = parse(
            r#"{"active":true,"aud":["r","s"],"client_id":"c","scope":"b a","exp":10,"iat":9,"nbf":null,"iss":"i","sub":"s",
                "username":"u","token_type":"Bearer","jti":"j","azp":"z","cnf":{"jkt":"x"},"realm_access":{"roles":["r"]}}"#,
        )
        .unwrap();
        assert!(response.active);
        assert_eq!(response.aud, Some(Audience::new(["r", "s"])));
        assert_eq!(response.scope, Some(Scopes::parse("a b").unwrap()));
        assert_eq!(response.exp, Some(UnixTime::from_secs(10)));
        assert_eq!(response.nbf, None);
        assert_eq!(response.token_type.as_deref(), Some("Bearer"));
        assert_eq!(response.cnf, Some(json!({"jkt": "x"})));
        assert_eq!(response.extra["realm_access"], json!({"roles": ["r"]}));
    }

    /// Only the boolean `true` is active.
    #[test]
    fn only_true_is_active() {
        assert_eq!(
            parse(r#"{"active":false,"aud":5,"scope":"a"}"#),
            Ok(IntrospectionResponse::default())
        );
        for body in [
            "",
            "true",
            "[]",
            "{}",
            r#"{"active":null}"#,
            r#"{"active":"true"}"#,
            r#"{"active":1}"#,
            r#"{"active":[true]}"#,
            r#"{"active":false,"active":true}"#,
            r#"{"active":true} {"active":true}"#,
        ] {
            assert!(parse(body).is_err(), "{body}");
        }
    }

    /// An active response with a member of the wrong type is rejected.
    #[test]
    fn wrong_types_are_rejected() {
        for body in [
            r#"{"active":true,"exp":"10"}"#,
            r#"{"active":true,"exp":-10}"#,
            r#"{"active":true,"iss":5}"#,
            r#"{"active":true,"aud":{}}"#,
            r#"{"active":true,"scope":5}"#,
            r#"{"active":true,"scope":null}"#,
            r#"{"active":true,"scope":null,"scp":"a"}"#,
            r#"{"active":true,"scp":null}"#,
            r#"{"active":true,"token_type":["Bearer"]}"#,
        ] {
            assert!(parse(body).is_err(), "{body}");
        }
    }

    /// D6: a response without `scope` does not restrict the scopes. An empty `scope` grants none.
    #[test]
    fn a_missing_scope_differs_from_an_empty_one() {
        for (member, scope) in [
            ("", None),
            (r#","scope":"""#, Some("")),
            (r#","scope":" ""#, Some("")),
            (r#","scope":[]"#, Some("")),
            (r#","scope":"","scp":"a""#, Some("")),
            (r#","scp":["a","b"]"#, Some("a b")),
        ] {
            let response = parse(&format!(r#"{{"active":true{member}}}"#)).unwrap();
            assert_eq!(
                response.scope,
                scope.map(|scope| Scopes::parse(scope).unwrap()),
                "{member}"
            );
            assert_eq!(
                parse(std::str::from_utf8(&response.to_json()).unwrap()),
                Ok(response),
                "{member}"
            );
        }
    }

    proptest! {
        /// Any active response round-trips. An inactive response has no other members.
        #[test]
        fn responses_round_trip(
            aud in option::of(prop::collection::vec(".{0,8}", 0..3)),
            scope in option::of("[a-z: ]{0,12}"),
            millis in option::of(0..10_000_000_000_000u64),
            sub: Option<String>,
            extra in arbitrary::extra(),
        ) {
            let built = IntrospectionResponse {
                active: true,
                aud: aud.map(|entries| Audience::new(entries.iter().map(String::as_str))),
                scope: scope.map(|scope| Scopes::parse(&scope).unwrap()),
                exp: millis.map(UnixTime::from_millis),
                sub,
                extra,
                ..Default::default()
            };
            prop_assert_eq!(IntrospectionResponse::parse(&built.to_json()), Ok(built.clone()));
            let inactive = IntrospectionResponse { active: false, ..built };
            prop_assert_eq!(inactive.to_json(), br#"{"active":false}"#);
        }
    }
}
