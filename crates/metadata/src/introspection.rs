use serde_json::{Map, Value};

use crate::{
    Audience, DocumentError, Scopes, UnixTime, claims,
    json::{Members, ObjectBuilder},
};

/// An introspection response (RFC 7662 section 2.2), with its types checked and nothing else: no date is
/// judged, no issuer and no audience compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntrospectionResponse {
    /// Whether the token counts. When not, no other field is filled, whatever the response says.
    pub active: bool,
    /// For whom the token is meant.
    pub aud: Option<Audience>,
    /// The client that it was given to.
    pub client_id: Option<String>,
    /// What it allows, read like [`AccessTokenClaims::scope`](crate::AccessTokenClaims::scope). None when the response does
    /// not say; empty when it says that the token allows nothing.
    pub scope: Option<Scopes>,
    /// When it ends.
    pub exp: Option<UnixTime>,
    /// When it begins.
    pub nbf: Option<UnixTime>,
    /// When it was made.
    pub iat: Option<UnixTime>,
    /// Who made it.
    pub iss: Option<String>,
    /// Whom it speaks for.
    pub sub: Option<String>,
    /// A name for people of whom it speaks for.
    pub username: Option<String>,
    /// The kind of token, as in a token response: `Bearer`, `DPoP`.
    pub token_type: Option<String>,
    /// The token's identifier.
    pub jti: Option<String>,
    /// The authorized party: the client, as OpenID providers name it.
    pub azp: Option<String>,
    /// How the token is bound to its sender (RFC 7800), in whatever form.
    pub cnf: Option<Value>,
    /// All other members.
    pub extra: Map<String, Value>,
}

impl IntrospectionResponse {
    /// Reads a response body.
    ///
    /// # Errors
    /// When the bytes are not one JSON object with each member once, when `active` is missing or not a
    /// boolean, and, in an active response, when a known member has the wrong type. `null` for any member
    /// but `active` and `scope` means that it is not there.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        let active = members.boolean("active")?.ok_or(DocumentError::Missing { member: "active" })?;
        if !active {
            return Ok(Self::default());
        }
        Ok(Self {
            active,
            aud: claims::audience(&mut members)?,
            client_id: members.string("client_id")?,
            scope: claims::scope(&mut members)?,
            exp: members.date("exp")?,
            nbf: members.date("nbf")?,
            iat: members.date("iat")?,
            iss: members.string("iss")?,
            sub: members.string("sub")?,
            username: members.string("username")?,
            token_type: members.string("token_type")?,
            jti: members.string("jti")?,
            azp: members.string("azp")?,
            cnf: members.value("cnf"),
            extra: members.rest(),
        })
    }

    /// Writes the response body: `{"active":false}` for an inactive one.
    pub fn to_json(&self) -> Vec<u8> {
        if !self.active {
            return br#"{"active":false}"#.to_vec();
        }
        let mut object = ObjectBuilder::over(&self.extra);
        object.boolean("active", Some(true));
        object.value("aud", self.aud.as_ref().map(Audience::to_value));
        object.string("client_id", self.client_id.as_deref());
        object.string("scope", self.scope.as_ref().map(Scopes::to_string).as_deref());
        object.date("exp", self.exp);
        object.date("nbf", self.nbf);
        object.date("iat", self.iat);
        object.string("iss", self.iss.as_deref());
        object.string("sub", self.sub.as_deref());
        object.string("username", self.username.as_deref());
        object.string("token_type", self.token_type.as_deref());
        object.string("jti", self.jti.as_deref());
        object.string("azp", self.azp.as_deref());
        object.value("cnf", self.cnf.clone());
        object.into_json()
    }
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

    /// Each member lands in its field.
    #[test]
    fn an_active_response_is_read() {
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

    /// Nothing but the boolean true is active.
    #[test]
    fn only_true_is_active() {
        assert_eq!(parse(r#"{"active":false,"aud":5,"scope":"a"}"#), Ok(IntrospectionResponse::default()));
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

    /// A member of the wrong type spoils an active response.
    #[test]
    fn wrong_types_are_refused() {
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

    /// D6: a response without `scope` says nothing of scopes; an empty one says that there are none.
    #[test]
    fn no_scope_is_not_an_empty_one() {
        for (member, scope) in [
            ("", None),
            (r#","scope":"""#, Some("")),
            (r#","scope":" ""#, Some("")),
            (r#","scope":[]"#, Some("")),
            (r#","scope":"","scp":"a""#, Some("")),
            (r#","scp":["a","b"]"#, Some("a b")),
        ] {
            let response = parse(&format!(r#"{{"active":true{member}}}"#)).unwrap();
            assert_eq!(response.scope, scope.map(|scope| Scopes::parse(scope).unwrap()), "{member}");
            assert_eq!(parse(std::str::from_utf8(&response.to_json()).unwrap()), Ok(response), "{member}");
        }
    }

    proptest! {
        /// What is built reads back; an inactive response says nothing else.
        #[test]
        fn what_is_built_reads_back(
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
