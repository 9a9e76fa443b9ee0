//! Claims are parsed strictly: types, dates, duplicates and scopes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    identifier::{Audience, Scopes},
    time::{UnixTime, numeric_date},
};

fn parse(payload: &str) -> Result<AccessTokenClaims, ClaimsError> {
    AccessTokenClaims::parse(payload.as_bytes())
}

fn scopes(payload: Value) -> Result<String, ClaimsError> {
    parse(&payload.to_string()).map(|claims| claims.scope.to_string())
}

/// C5, C6, C7: each claim is parsed into its field, and all others into `extra`.
#[test]
fn claims_are_parsed() {
    let claims = parse(
        r#"{"iss":"https://as.example","sub":"s","aud":["a",1],"exp":10,"nbf":9.5,"iat":9,"scope":"b a","client_id":"c",
            "azp":"z","jti":"j","typ":"Bearer","cnf":{"jkt":"x"},"sid":"1","auth_time":8}"#,
    )
    .unwrap();
    assert_eq!(claims.iss.as_deref(), Some("https://as.example"));
    assert_eq!(claims.sub.as_deref(), Some("s"));
    assert_eq!(claims.aud, Some(Audience::new(["a"])));
    assert_eq!(claims.exp, Some(UnixTime::from_secs(10)));
    assert_eq!(claims.nbf, Some(UnixTime::from_millis(9500)));
    assert_eq!(claims.iat, Some(UnixTime::from_secs(9)));
    assert_eq!(claims.scope, Scopes::parse("a b").unwrap());
    assert_eq!(claims.client_id.as_deref(), Some("c"));
    assert_eq!(claims.azp.as_deref(), Some("z"));
    assert_eq!(claims.jti.as_deref(), Some("j"));
    assert_eq!(claims.typ.as_deref(), Some("Bearer"));
    assert_eq!(claims.cnf, Some(json!({"jkt": "x"})));
    assert_eq!(
        claims.extra.keys().collect::<Vec<_>>(),
        ["auth_time", "sid"]
    );
}

/// C6: the audience is a string or the strings of an array.
#[test]
fn an_audience_is_a_string_or_an_array() {
    for (aud, entries) in [
        ("\"a\"", vec!["a"]),
        ("[\"a\"]", vec!["a"]),
        ("[\"a\",\"b\"]", vec!["a", "b"]),
        ("[{\"a\":\"b\"},\"c\"]", vec!["c"]),
        ("[]", vec![]),
    ] {
        let payload = format!("{{\"aud\":{aud}}}");
        let claims = UnverifiedClaims::parse(payload.as_bytes()).unwrap();
        assert_eq!(
            claims.audience().map(Iterator::collect::<Vec<_>>).as_ref(),
            Some(&entries),
            "{aud}"
        );
        assert_eq!(
            parse(&payload).unwrap().aud,
            Some(Audience::new(entries)),
            "{aud}"
        );
    }
    assert_eq!(
        UnverifiedClaims::parse(b"{}")
            .unwrap()
            .audience()
            .map(Iterator::count),
        None
    );
}

/// C5: a claim of the wrong type is rejected, and so is `null`.
#[test]
fn wrong_types_are_rejected() {
    for claim in ["iss", "sub", "client_id", "azp", "jti", "typ"] {
        for value in ["null", "1", "true", "[]", "[\"a\"]", "{}"] {
            let error = parse(&format!(r#"{{"{claim}":{value}}}"#)).unwrap_err();
            assert_eq!(error.code(), "claims.type", "{claim} {value}");
        }
    }
    for (claim, value) in [
        ("aud", "null"),
        ("aud", "5"),
        ("aud", "{}"),
        ("scope", "null"),
        ("scope", "{}"),
        ("scp", "7"),
    ] {
        assert_eq!(
            parse(&format!(r#"{{"{claim}":{value}}}"#))
                .unwrap_err()
                .code(),
            "claims.type",
            "{claim}"
        );
    }
}

/// C7: invalid dates are rejected in each of the three claims.
#[test]
fn invalid_dates_are_rejected() {
    for claim in ["exp", "nbf", "iat"] {
        for value in [
            "-1",
            "1e18",
            "18446744073709551616",
            "\"10\"",
            "null",
            "true",
            "[10]",
        ] {
            let error = parse(&format!(r#"{{"{claim}":{value}}}"#)).unwrap_err();
            assert_eq!(error.code(), "claims.date", "{claim} {value}");
        }
        for number in [
            "-0.5",
            "-9223372036854775808",
            "9223372036854775807",
            "9223372036854775808",
            "340282366920938463463374607431768211456",
            "253402300800000",
            "1e308",
            "1e309",
            "-1e309",
            "1e999999999",
            "{}",
            "NaN",
            "Infinity",
            "-Infinity",
            "0x7fffffff",
            "+4102444800",
            "04102444800",
            "4102444800.",
            ".5",
        ] {
            assert!(
                parse(&format!(r#"{{"{claim}":{number}}}"#)).is_err(),
                "{claim} {number}"
            );
        }
        for number in ["4102444800.75", "4102444800.0", "4.1024448e9"] {
            assert!(
                parse(&format!(r#"{{"{claim}":{number}}}"#)).is_ok(),
                "{claim} {number}"
            );
        }
    }
}

/// C7: duplicate claims are rejected, even if one name is escaped.
#[test]
fn duplicates_are_rejected() {
    for payload in [
        r#"{"exp":1,"exp":2}"#,
        r#"{"aud":"a","sub":"s","aud":"a"}"#,
        r#"{"unknown":{},"unknown":{}}"#,
        r#"{"iss":"a","\u0069ss":"b"}"#,
    ] {
        assert_eq!(parse(payload), Err(ClaimsError::NotAnObject), "{payload}");
    }
}

#[test]
fn other_values_than_an_object_are_rejected() {
    for payload in [
        "",
        "[]",
        "null",
        "\"a\"",
        "{",
        "{}{}",
        "{\"a\":\"\\ud800\"}",
    ] {
        assert_eq!(parse(payload), Err(ClaimsError::NotAnObject), "{payload}");
    }
    assert_eq!(
        AccessTokenClaims::parse(b"{\"a\":\"\xff\"}"),
        Err(ClaimsError::NotAnObject)
    );
}

/// C8: scopes are a string or an array, in `scope` or, if it is missing, in `scp`.
#[test]
fn scopes_come_from_scope_or_scp() {
    assert_eq!(scopes(json!({})).unwrap(), "");
    assert_eq!(scopes(json!({"scope": ""})).unwrap(), "");
    assert_eq!(scopes(json!({"scope": " b  a "})).unwrap(), "a b");
    assert_eq!(scopes(json!({"scope": ["b", "a"]})).unwrap(), "a b");
    assert_eq!(scopes(json!({"scp": ["b", "a"]})).unwrap(), "a b");
    assert_eq!(scopes(json!({"scp": "b a"})).unwrap(), "a b");
    assert_eq!(
        scopes(json!({"scope": "a", "scp": ["admin"]})).unwrap(),
        "a"
    );
}

/// C8: an entry of an array is a single name.
#[test]
fn malformed_scopes_are_rejected() {
    for payload in [
        json!({"scope": ["a b"]}),
        json!({"scope": [""]}),
        json!({"scp": ["a", "\t"]}),
        json!({"scope": "a\"b"}),
        json!({"scope": "a\nb"}),
        json!({"scope": "ä"}),
    ] {
        assert_eq!(
            scopes(payload.clone()).unwrap_err().code(),
            "claims.scope",
            "{payload}"
        );
    }
    assert_eq!(
        scopes(json!({"scope": ["a", 1]})).unwrap_err().code(),
        "claims.type"
    );
}

/// C1, C5: `unverified_issuer` returns the issuer or fails.
#[test]
fn the_unverified_issuer_is_found() {
    assert_eq!(
        unverified_issuer(br#" {"a":[{"iss":"b"}],"iss":"c"}"#),
        Ok(Some("c".to_owned()))
    );
    assert_eq!(
        unverified_issuer(br#"{"\u0069ss":"\u0063"}"#),
        Ok(Some("c".to_owned()))
    );
    assert_eq!(unverified_issuer(b"{}"), Ok(None));
    assert_eq!(unverified_issuer(br#"{"iss":null}"#), Ok(None));
    for payload in [
        r#"{"iss":"a","iss":"a"}"#,
        r#"["a"]"#,
        "",
        "{",
        r#"{"iss":"a"}x"#,
    ] {
        assert_eq!(
            unverified_issuer(payload.as_bytes()),
            Err(ClaimsError::NotAnObject),
            "{payload}"
        );
    }
    for payload in [r#"{"iss":5}"#, r#"{"iss":["a"]}"#] {
        assert_eq!(
            unverified_issuer(payload.as_bytes()),
            Err(ClaimsError::WrongType { claim: "iss" }),
            "{payload}"
        );
    }
}

/// A valid or nearly valid object with duplicate names and values of the wrong type.
fn object() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "sub",
        "aud",
        "exp",
        "scope",
        "scp",
        "cnf",
        "a",
        "b",
        "\\u0073ub",
        "\\u0061",
    ]);
    let value = prop::sample::select(vec![
        "\"x\"",
        "\"\\u0061b\"",
        "\"\\ud800\"",
        "null",
        "true",
        "1",
        "-1",
        "1.5",
        "1e999",
        "01",
        "[]",
        "[\"x\"]",
        "[\"x\",1]",
        "[[\"x\"]]",
        "{}",
        "{\"a\":1,\"a\":2}",
        "{\"a\":[1e999]}",
        "\"ä\"",
    ]);
    prop::collection::vec((name, value), 0..4).prop_map(|members| {
        let members: Vec<String> = members
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

/// Whether the payload must be accepted, decided from its parsed form.
fn is_valid(payload: &str, value: &Map<String, Value>) -> bool {
    let is_string = |name: &str| value.get(name).is_none_or(Value::is_string);
    let has_date = value
        .get("exp")
        .is_none_or(|exp| numeric_date::parse(exp).is_some());
    let has_audience = value
        .get("aud")
        .is_none_or(|aud| aud.is_string() || aud.is_array());
    let without_nested_names = payload
        .replace("{\"a\":1,\"a\":2}", "0")
        .replace("{\"a\":[1e999]}", "0");
    is_string("sub")
        && has_date
        && has_audience
        && without_nested_names.matches("\":").count() == value.len()
}

/// C7: a duplicate among many claims is found.
#[test]
fn duplicates_among_many_are_rejected() {
    for count in [1, 23, 24, 25, 26, 2000] {
        let names: Vec<String> = (0..count)
            .map(|number| format!("\"c{}\":0", number * 7919 % 3001))
            .collect();
        assert!(
            parse(&format!("{{{}}}", names.join(","))).is_ok(),
            "{count}"
        );
        for repeated in [0, count / 2, count - 1] {
            let payload = format!("{{{},{}}}", names.join(","), names[repeated]);
            assert_eq!(
                parse(&payload),
                Err(ClaimsError::NotAnObject),
                "{count} {repeated}"
            );
        }
    }
}

/// C7: the depth of unknown claims is limited, too.
#[test]
fn depth_is_limited() {
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(100)).is_ok());
    for depth in [128, 10_000, 100_000] {
        assert_eq!(
            parse(&nested(depth)),
            Err(ClaimsError::NotAnObject),
            "{depth}"
        );
        assert!(
            UnverifiedClaims::parse(nested(depth).as_bytes()).is_err(),
            "{depth}"
        );
    }
}

proptest! {
    /// C7: no payload causes a panic.
    #[test]
    fn random_payloads_do_not_panic(payload in r#"\{("(exp|iat|nbf|aud|scope)":[-0-9.eE"\[\]a ]{0,12},?){0,3}\}"#) {
        let _ = parse(&payload);
        let _ = unverified_issuer(payload.as_bytes());
    }

    /// C5, C7: the parser accepts what serde_json accepts, except duplicates, wrong types and
    /// invalid dates.
    #[test]
    fn the_parser_agrees_with_serde_json(payload in object()) {
        let value: Option<Map<String, Value>> = serde_json::from_str(&payload).ok();
        let claims = UnverifiedClaims::parse(payload.as_bytes());
        prop_assert_eq!(claims.is_ok(), value.as_ref().is_some_and(|value| is_valid(&payload, value)), "{:?}", claims);
        let (Ok(claims), Some(value)) = (claims, value) else { return Ok(()) };
        prop_assert_eq!(claims.sub(), value.get("sub").and_then(Value::as_str));
        prop_assert_eq!(claims.has_cnf(), value.contains_key("cnf"));
        prop_assert_eq!(claims.contains_unknown_claim("a"), value.contains_key("a"));

        let owned = parse(&payload);
        prop_assert_eq!(owned.clone().map(|owned| owned.scope), claims.scopes());
        if let Ok(owned) = owned {
            prop_assert_eq!(&owned.aud, &claims.audience().map(Audience::new));
            for (name, extra) in &owned.extra {
                prop_assert_eq!(Some(extra), value.get(name));
            }
            prop_assert_eq!(owned.cnf.as_ref(), value.get("cnf"));
        }
    }

    /// C1: `unverified_issuer` and the full parser return the same issuer.
    #[test]
    fn both_functions_return_the_same_issuer(iss: Option<String>, other: String) {
        let mut payload = json!({"sub": other, "nested": {"iss": "no"}});
        if let Some(iss) = &iss {
            payload["iss"] = json!(iss);
        }
        let payload = payload.to_string();
        prop_assert_eq!(parse(&payload).unwrap().iss, iss.clone());
        prop_assert_eq!(unverified_issuer(payload.as_bytes()), Ok(iss));
    }
}
