//! Challenges are parsed strictly and within limits, and built with valid quoting.

use http::HeaderValue;
use proptest::{option, prelude::*};
use url::Url;

use super::*;
use crate::identifier::Scopes;

fn parse(value: &str) -> Result<Vec<Challenge>, ChallengeError> {
    parse_challenges([value.as_bytes()])
}

/// Formats challenges briefly: the scheme, then the token68 or the parameters.
fn format_challenges(challenges: &[Challenge]) -> String {
    let format_one = |challenge: &Challenge| {
        let parameters: String = challenge
            .params()
            .map(|(name, value)| format!(" {name}=<{value}>"))
            .collect();
        let token68 = challenge
            .token68()
            .map(|text| format!(" <{text}>"))
            .unwrap_or_default();
        format!("{}{token68}{parameters}", challenge.scheme())
    };
    challenges
        .iter()
        .map(format_one)
        .collect::<Vec<_>>()
        .join("; ")
}

/// B5: several challenges in one value, token68, quoted pairs, unusual spacing and empty list
/// elements are parsed.
#[test]
fn well_formed_values_are_parsed() {
    for (value, expected) in [
        ("", ""),
        (" , ,\t,", ""),
        ("Negotiate", "Negotiate"),
        ("Negotiate, Basic", "Negotiate; Basic"),
        ("Basic realm=simple", "Basic realm=<simple>"),
        (
            r#"Newauth realm="apps", type=1, title="Login", Basic realm="simple""#,
            "Newauth realm=<apps> type=<1> title=<Login>; Basic realm=<simple>",
        ),
        (
            r#"Basic realm="simple", Newauth realm="apps", type=1"#,
            "Basic realm=<simple>; Newauth realm=<apps> type=<1>",
        ),
        (
            "Negotiate YWJj, Bearer realm=a",
            "Negotiate <YWJj>; Bearer realm=<a>",
        ),
        ("Negotiate YWJjZA== ,Bearer", "Negotiate <YWJjZA==>; Bearer"),
        ("Negotiate a/b+c._~-d=", "Negotiate <a/b+c._~-d=>"),
        ("Bearer realm", "Bearer <realm>"),
        ("Bearer realm= ,", "Bearer <realm=>"),
        (
            "Bearer   realm\t= \t\"a\"  ,scope =\"b c\" ",
            "Bearer realm=<a> scope=<b c>",
        ),
        (r#",,Bearer ,, realm="a",,,x=y,,"#, "Bearer realm=<a> x=<y>"),
        (r#"Bearer a="\"\\\x, b=\"c\"""#, r#"Bearer a=<"\x, b="c">"#),
        (r#"Bearer a="""#, "Bearer a=<>"),
        (r#"bEaReR Realm="x""#, "bEaReR Realm=<x>"),
        (
            r#"Bearer a="Negotiate, Basic realm=x""#,
            "Bearer a=<Negotiate, Basic realm=x>",
        ),
        (
            "Bearer !#$%&'*+-.^_`|~09azAZ=v",
            "Bearer !#$%&'*+-.^_`|~09azAZ=<v>",
        ),
        ("Bearer a=\"\u{e4}\t\"", "Bearer a=<\u{e4}\t>"),
    ] {
        assert_eq!(
            parse(value)
                .map(|challenges| format_challenges(&challenges))
                .as_deref(),
            Ok(expected),
            "{value:?}"
        );
    }
}

/// B5: several field lines form one list.
#[test]
fn several_values_form_one_list() {
    let values: [&[u8]; 4] = [
        b"Basic realm=a",
        b"",
        b"Bearer realm=b",
        b"error=c, Negotiate",
    ];
    assert_eq!(
        format_challenges(&parse_challenges(values).unwrap()),
        "Basic realm=<a>; Bearer realm=<b> error=<c>; Negotiate"
    );
}

/// B5: bytes that are not UTF-8 are replaced, not rejected.
#[test]
fn invalid_utf8_is_replaced() {
    let challenges = parse_challenges([b"Bearer a=\"M\xfcller\"".as_slice()]).unwrap();
    assert_eq!(challenges[0].param("A"), Some("M\u{fffd}ller"));
}

/// B5: malformed values are rejected.
#[test]
fn malformed_values_are_rejected() {
    for value in [
        "=",
        "=a",
        "\"Bearer\"",
        "realm=a",
        "Bearer realm=a b",
        "Bearer realm=a b=c",
        "Bearer realm=\"a\" scope=\"b\"",
        "Bearer realm=\"a\"scope=\"b\"",
        "Bearer realm=\"a\"\"b\"",
        "Bearer realm=\"a",
        "Bearer realm=\"a\\",
        "Bearer realm=\"a\\\"",
        "Bearer realm=, x=\"",
        "Bearer realm==a",
        "Bearer realm=a=b",
        "Bearer =a",
        "Bearer a b",
        "Bearer abc def",
        "Bearer abc== x",
        "Bearer abc, x=y",
        "Bearer/abc",
        "Bearer\"x\"",
        "Bearer: realm=a",
        "Bearer; realm=a",
        "Bearer resource_metadata=https://a.example",
        "Bearer realm='a b'",
        "Bearer realm=\"a\nb\"",
        "Bearer realm=\"a\rb\"",
        "Bearer realm=\"a\0b\"",
        "Bearer realm=\"a\\\nb\"",
        "Bearer realm=\"a\u{7f}b\"",
        "Bearer\nrealm=a",
        "B\u{e4}rer realm=a",
        "Bearer r\u{e4}lm=a",
        "Bearer realm=\u{e4}",
    ] {
        assert_eq!(parse(value), Err(ChallengeError::Malformed), "{value:?}");
    }
}

/// B5: duplicate parameters are rejected (RFC 9110 section 11.2).
#[test]
fn duplicate_parameters_are_rejected() {
    assert_eq!(
        parse("Bearer realm=a, x=b, REALM=c"),
        Err(ChallengeError::DuplicateParameter)
    );
    assert!(parse("Bearer realm=a, Basic realm=b").is_ok());
}

/// B5: sizes and counts are limited.
#[test]
fn limits_are_enforced() {
    let parameters = |count: usize| (0..count).map(|n| format!(", p{n}=v")).collect::<String>();
    assert!(parse(&format!("Bearer realm=a{}", parameters(63))).is_ok());
    assert_eq!(
        parse(&format!("Bearer realm=a{}", parameters(64))),
        Err(ChallengeError::TooManyParameters)
    );
    assert_eq!(parse(&["Basic"; 32].join(",")).map(|all| all.len()), Ok(32));
    assert_eq!(
        parse(&["Basic"; 33].join(",")),
        Err(ChallengeError::TooMany)
    );
    let long = |length: usize| {
        format!(
            "Bearer realm=\"{}\"",
            "a".repeat(length - "Bearer realm=\"\"".len())
        )
    };
    assert!(parse(&long(MAX_BYTES)).is_ok());
    assert_eq!(parse(&long(MAX_BYTES + 1)), Err(ChallengeError::TooLarge));
    let half = long(MAX_BYTES / 2 + 1);
    assert_eq!(
        parse_challenges([half.as_bytes(), half.as_bytes()]),
        Err(ChallengeError::TooLarge)
    );
}

/// B5, G1: the first bearer challenge is found among others, in any letter case.
#[test]
fn the_bearer_challenge_is_found() {
    let challenges = parse(
        r#"Negotiate, bearer Realm="r", RESOURCE_METADATA="https://a.example/m", scope="b a", error=invalid_token,
            error_description="d", error_uri="u", unknown=1, Bearer realm="second""#
            .replace('\n', "")
            .as_str(),
    )
    .unwrap();
    let bearer = BearerChallenge::from_challenges(&challenges).unwrap();
    let expected = BearerChallenge {
        realm: Some("r".into()),
        resource_metadata: Some("https://a.example/m".into()),
        scope: Some(Scopes::parse("a b").unwrap()),
        error: Some("invalid_token".into()),
        error_description: Some("d".into()),
        error_uri: Some("u".into()),
    };
    assert_eq!(bearer, expected);
    assert_eq!(
        BearerChallenge::from_challenges(&parse("Basic realm=a").unwrap()),
        None
    );
}

/// B5: an empty or malformed scope is ignored.
#[test]
fn invalid_scopes_are_ignored() {
    for value in [
        r#"Bearer scope="""#,
        r#"Bearer scope=" ""#,
        r#"Bearer scope="a\"b""#,
        "Bearer YQ==",
        "Bearer",
    ] {
        assert_eq!(
            BearerChallenge::from_challenges(&parse(value).unwrap()).unwrap(),
            BearerChallenge::default()
        );
    }
}

fn metadata_url() -> Url {
    Url::parse("https://mcp.example/.well-known/oauth-protected-resource/mcp").unwrap()
}

/// B1, B2: the builder produces the values that a guard sends.
#[test]
fn built_values() {
    assert_eq!(
        BearerChallengeBuilder::new("mcp", &metadata_url()).build(),
        r#"Bearer realm="mcp", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp""#
    );

    let scopes = Scopes::parse("b a").unwrap();
    let value = BearerChallengeBuilder::new("mcp", &metadata_url())
        .scope(&scopes)
        .error(BearerError::InsufficientScope, "more is needed")
        .build();
    assert_eq!(
        value,
        concat!(
            r#"Bearer realm="mcp", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp", "#,
            r#"scope="a b", error="insufficient_scope", error_description="more is needed""#
        )
    );
}

/// B4: no realm or description can add a parameter, a challenge or a field line.
#[test]
fn values_cannot_end_the_quoted_string() {
    for hostile in [
        "\"",
        "\\",
        "\\\"",
        "a\", error=\"x",
        "a\"\r\nSet-Cookie: x=y",
        "a\\\", Basic realm=\"b",
        "\u{0}\u{7f}\u{85}\u{2028}ä",
        "\t",
    ] {
        let value = BearerChallengeBuilder::new(hostile, &metadata_url())
            .error(BearerError::InvalidToken, hostile)
            .build();
        let challenges = parse_challenges([value.as_bytes()]).unwrap();
        let names: Vec<&str> = challenges[0].params().map(|(name, _)| name).collect();
        assert_eq!(challenges.len(), 1, "{hostile:?}");
        assert_eq!(
            names,
            ["realm", "resource_metadata", "error", "error_description"],
            "{hostile:?}"
        );
        assert!(
            value
                .as_bytes()
                .iter()
                .all(|byte| (b' '..=b'~').contains(byte)),
            "{value:?}"
        );
    }
}

fn with_replacements(text: &str) -> String {
    text.chars()
        .map(|c| if (' '..='~').contains(&c) { c } else { '?' })
        .collect()
}

/// One parameter in any form that the grammar allows: its name, its value and the form.
fn parameter() -> impl Strategy<Value = (String, String, String)> {
    let space = "[ \t]{0,2}";
    (
        (
            "[a-zA-Z0-9_-]{1,6}",
            "[a-z0-9.]{1,6}",
            "[ -~\t]{0,8}",
            any::<bool>(),
        ),
        (space, space),
    )
        .prop_map(|((name, token, text, quoted), (before, after))| {
            if !quoted {
                return (
                    name.clone(),
                    token.clone(),
                    format!("{name}{before}={after}{token}"),
                );
            }
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
            (
                name.clone(),
                text,
                format!("{name}{before}={after}\"{escaped}\""),
            )
        })
}

proptest! {
    /// B4, B5: any built value parses to its input.
    #[test]
    fn built_values_round_trip(
        realm: String,
        path: String,
        scope in option::of("[a-z:]{1,6}( [a-z:]{1,6}){0,2}"),
        description in option::of(any::<String>()),
    ) {
        let mut url = metadata_url();
        url.set_path(&path);
        url.set_query(Some(&path));
        let scope = scope.map(|scope| Scopes::parse(&scope).unwrap());
        let mut builder = BearerChallengeBuilder::new(&realm, &url);
        if let Some(scope) = &scope {
            builder = builder.scope(scope);
        }
        if let Some(description) = &description {
            builder = builder.error(BearerError::InvalidToken, description);
        }
        let value: HeaderValue = builder.build();
        let challenges = parse_challenges([value.as_bytes()]).unwrap();
        prop_assert_eq!(challenges.len(), 1);
        let expected = BearerChallenge {
            realm: Some(with_replacements(&realm)),
            resource_metadata: Some(url.into()),
            scope,
            error: description.as_ref().map(|_| "invalid_token".to_owned()),
            error_description: description.as_deref().map(with_replacements),
            error_uri: None,
        };
        prop_assert_eq!(BearerChallenge::from_challenges(&challenges), Some(expected));
    }

    /// B5: every form that the grammar allows parses to the same value.
    #[test]
    fn all_forms_parse_to_the_same_value(
        challenges in prop::collection::vec(("[A-Za-z0-9]{1,8}", prop::collection::vec(parameter(), 1..4)), 1..4),
        separator in "[ \t]{0,2},[, \t]{0,3}",
    ) {
        let mut value = String::new();
        let mut expected = Vec::new();
        for (scheme, parameters) in challenges {
            let mut expected_parameters: Vec<(String, String)> = Vec::new();
            for (name, text, form) in parameters {
                if expected_parameters.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
                    continue;
                }
                let before = if expected_parameters.is_empty() { format!("{separator}{scheme} ") } else { separator.clone() };
                value.push_str(&before);
                value.push_str(&form);
                expected_parameters.push((name, text));
            }
            expected.push(Challenge { scheme, credentials: Credentials::Parameters(expected_parameters) });
        }
        prop_assert_eq!(parse(&value), Ok(expected));
    }

    /// B5: no input causes a panic.
    #[test]
    fn random_bytes_do_not_panic(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..3)) {
        let _ = parse_challenges(values.iter().map(Vec::as_slice));
    }

    /// B5: no nearly well-formed input causes a panic.
    #[test]
    fn nearly_well_formed_values_do_not_panic(value in r#"([A-Za-z]{1,3}|[ ,="\\\t]|ä){0,30}"#) {
        let _ = parse(&value);
    }
}
