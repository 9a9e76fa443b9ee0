//! Settings of issuers: introspection, audiences and scope claims.

use super::*;

/// Returns the issuer's line in [`GOOD`], and that line followed by others.
fn issuer_with(lines: &str) -> (&'static str, String) {
    const ISSUER: &str = "issuer = \"https://auth.example.com/realms/prod\"";
    (ISSUER, format!("{ISSUER}\n{lines}"))
}

/// C1: algorithms of signatures that are not checked cause a warning.
#[test]
fn unused_algorithms_cause_a_warning() {
    let warnings = |lines: &str| {
        let (from, to) = issuer_with(&format!("{lines}\nclient_id = \"portcullis\""));
        let warnings = check(&GOOD.replace(from, &to)).unwrap().warnings;
        let about = |warning: &Diagnostic| warning.text.starts_with("issuer[0].algorithms has no");
        warnings.iter().filter(|warning| about(warning)).count()
    };
    let algorithms = "algorithms = [\"ES256\"]";
    for (validate, expected) in [("introspection", 1), ("jwt+introspection", 0)] {
        let validate = format!("validate = \"{validate}\"");
        assert_eq!(warnings(&validate), 0);
        assert_eq!(warnings(&format!("{validate}\n{algorithms}")), expected);
    }
}

/// J9: a file with more keys than a set can have is named with their number.
#[test]
fn too_many_keys_are_counted() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let key = r#"{"kty":"RSA","n":"AA","e":"AQAB"}"#;
    let (from, to) = issuer_with(&format!("jwks_file = {:?}", file.path()));
    let write = |count| {
        let keys = vec![key; count].join(",");
        std::fs::write(file.path(), format!("{{\"keys\":[{keys}]}}")).unwrap();
    };
    write(100);
    check(&GOOD.replace(from, &to)).unwrap();
    write(101);
    let message = error(from, &to);
    assert!(message.starts_with("issuer[0].jwks_file = "), "{message}");
    assert!(message.contains("has 101 keys; remove"), "{message}");
}

/// C1: each issuer's tokens are validated by signature, by introspection, or both.
#[test]
fn introspection_is_configured() {
    use portcullis_verifier::{IntrospectionAuthentication, Validation};
    let plan_of = |lines: &str| {
        let (from, to) = issuer_with(lines);
        check(&GOOD.replace(from, &to))
            .unwrap()
            .issuers
            .remove(0)
            .settings
            .validation
    };
    assert!(matches!(plan_of(""), Validation::Jwt));

    let Validation::Introspection(settings) =
        plan_of("validate = \"introspection\"\nclient_id = \"portcullis\"")
    else {
        panic!("introspection");
    };
    assert_eq!(settings.client_id.as_str(), "portcullis");
    assert_eq!(settings.max_in_flight, 64);
    assert!(settings.client_secret.is_none());
    assert!(settings.endpoint.is_none());
    assert!(settings.authentication.is_none());
    assert_eq!(settings.cache_lifetime, Duration::from_secs(30));

    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "hush\n").unwrap();
    let validation = plan_of(&format!(
        r#"
        validate = "jwt+introspection"
        client_id = "portcullis"
        client_secret = {{ file = "{}" }}
        introspection_endpoint = "http://127.0.0.1:9/introspect"
        introspection_auth = "basic"
        introspection_in_flight = 8
        introspection_cache = "5s"
        "#,
        secret.path().display()
    ));
    let Validation::JwtAndIntrospection(settings) = validation else {
        panic!("jwt+introspection")
    };
    assert_eq!(settings.client_secret.unwrap().secret(), "hush");
    assert_eq!(
        settings.endpoint.unwrap().as_str(),
        "http://127.0.0.1:9/introspect"
    );
    assert_eq!(
        settings.authentication,
        Some(IntrospectionAuthentication::Basic)
    );
    assert_eq!(settings.max_in_flight, 8);
    assert_eq!(settings.cache_lifetime, Duration::from_secs(5));
}

/// D2, J6: invalid introspection settings are rejected, and the error names them in one line.
#[test]
fn invalid_introspection_settings_are_rejected() {
    const ON: &str = "validate = \"introspection\"\nclient_id = \"portcullis\"\n";
    for (lines, named) in [
        ("validate = \"introspection\"".to_owned(), "client_id"),
        (
            format!("{ON}client_secret = {{ env = \"PORTCULLIS_TEST_NO_SUCH_SECRET\" }}"),
            "client_secret: the environment variable PORTCULLIS_TEST_NO_SUCH_SECRET is not set",
        ),
        (
            format!("{ON}client_secret = {{ file = \"/nowhere/secret\" }}"),
            "client_secret: the file /nowhere/secret cannot be read",
        ),
        (
            format!("{ON}client_secret = \"hunter2\""),
            "{ env = \"NAME\" }",
        ),
        (
            format!("{ON}introspection_endpoint = \"http://auth.example.com/introspect\""),
            "introspection_endpoint",
        ),
        (
            format!("{ON}introspection_endpoint = \"introspect\""),
            "introspection_endpoint",
        ),
        (
            format!("{ON}introspection_auth = \"basic\""),
            "client_secret",
        ),
        (
            format!("{ON}introspection_auth = \"digest\""),
            "introspection_auth",
        ),
        (format!("{ON}introspection_in_flight = 0"), "1 to 1024"),
        (format!("{ON}introspection_cache = \"31s\""), "30 s"),
        (
            format!("{ON}jwks_uri = \"https://auth.example.com/jwks\""),
            "jwks_uri",
        ),
        (
            "client_id = \"portcullis\"".to_owned(),
            "client_id is for introspection",
        ),
        (
            "introspection_auth = \"post\"".to_owned(),
            "introspection_auth is for introspection",
        ),
        (
            "introspection_cache = \"1s\"".to_owned(),
            "introspection_cache is for introspection",
        ),
    ] {
        let (from, to) = issuer_with(&lines);
        let message = error(from, &to);
        assert!(message.contains(named), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

/// C1: only one issuer of a resource can introspect opaque tokens.
#[test]
fn two_introspection_issuers_are_rejected() {
    let (from, to) = issuer_with("validate = \"introspection\"\nclient_id = \"portcullis\"");
    let other = "[[issuer]]\nissuer = \"https://other.example.com\"\nvalidate = \"introspection\"\nclient_id = \"portcullis\"";
    let message = format!(
        "{:#}",
        check(&with_lines(other).replace(from, &to))
            .err()
            .expect("an error")
    );
    assert!(
        message.contains("opaque tokens can go to one issuer only"),
        "{message}"
    );
    assert!(!message.contains('\n'), "{message}");
    let both = other.replace("\"introspection\"", "\"jwt+introspection\"");
    assert!(check(&with_lines(&both).replace(from, &to)).is_ok());
}

#[test]
fn invalid_issuers_are_rejected() {
    let issuer = "https://auth.example.com/realms/prod";
    assert!(error(issuer, "http://auth.example.com").contains("issuer"));
    assert!(error(issuer, "auth.example.com").contains("issuer"));
    assert!(
        error(
            "[[resource]]",
            &format!("[[issuer]]\nissuer = \"{issuer}\"\n[[resource]]")
        )
        .contains("twice")
    );
    assert!(error("[[resource]]", "algorithms = [\"HS256\"]\n[[resource]]").contains("HS256"));
    assert!(error("[[resource]]", "leeway = \"5m\"\n[[resource]]").contains("leeway"));
    assert!(
        error(
            "[[resource]]",
            "jwks_uri = \"http://keys.example.com\"\n[[resource]]"
        )
        .contains("jwks_uri")
    );
    assert!(
        error(
            "[[resource]]",
            "jwks_file = \"/nowhere.json\"\n[[resource]]"
        )
        .contains("/nowhere.json")
    );
}

/// J9: every invalid value has its error, also of a list and of settings that are checked together.
#[test]
fn all_errors_of_an_issuer_are_found() {
    let lines = "algorithms = [\"HS256\", \"RS256\", \"none\"]\nleeway = \"5m\"\nscope_claims = [\"scope\", \"roles\", \"scp\"]\n\
                 ca_file = \"/nowhere.pem\"\nproxy = \"ftp://proxy.example.com\"\njwks = { cooldown = \"1ms\" }\n\
                 validate = \"jwt+introspection\"\nclient_id = \"a\"\nintrospection_auth = \"basic\"\n\
                 introspection_in_flight = 0\nintrospection_cache = \"31s\"";
    let (from, to) = issuer_with(lines);
    let message = format!(
        "{:#}",
        check(&GOOD.replace(from, &to)).err().expect("an error")
    );
    for wanted in [
        "algorithms has \"HS256\"",
        "algorithms has \"none\"",
        "leeway",
        "scope_claims has \"scope\"",
        "scope_claims has \"scp\"",
        "ca_file",
        "proxy",
        "jwks.cooldown",
        "client_secret",
        "introspection_in_flight",
        "introspection_cache",
    ] {
        assert!(
            message
                .lines()
                .any(|line| line.starts_with("issuer[0]") && line.contains(wanted)),
            "{wanted}: {message}"
        );
    }
    assert_eq!(message.lines().count(), 11, "{message}");
}

/// F7: an issuer on loopback causes a warning if the base URL is not on loopback.
#[test]
fn loopback_issuers_of_public_resources_cause_a_warning() {
    let issuer = "https://auth.example.com/realms/prod";
    let local = GOOD.replace(issuer, "http://127.0.0.1:8080/realms/prod");
    let warnings = check(&local).unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0]
            .text
            .starts_with("issuer[0].issuer = \"http://127.0.0.1:8080"),
        "{warnings:?}"
    );
    assert!(
        check(&local.replace("https://mcp.example.com", "http://127.0.0.1:3000"))
            .unwrap()
            .warnings
            .is_empty()
    );
    assert!(
        check(&GOOD.replace(issuer, "https://localhost:8443"))
            .unwrap()
            .warnings
            .is_empty()
    );
}

/// C6: a further audience is an absolute URL. A list belongs to the only resource.
#[test]
fn a_list_of_audiences_belongs_to_the_only_resource() {
    let (from, to) = issuer_with("audiences = [\"https://old.example.com/mcp\"]");
    let plan = check(&GOOD.replace(from, &to)).unwrap();
    let audience = &plan.issuers[0].settings.audiences[0];
    assert_eq!(audience.resource.as_str(), "https://mcp.example.com/mcp");
    assert_eq!(audience.name.as_str(), "https://old.example.com/mcp");
    for name in ["api", "account", "mcp.example.com", "//mcp.example.com/mcp"] {
        let (from, to) = issuer_with(&format!("audiences = [\"{name}\"]"));
        assert!(error(from, &to).contains("audiences"), "{name}");
    }
    assert!(error_with_two(&to).contains("there are 2 resources, and each audience would count"));
}

/// C6: with several resources, each audience belongs to one endpoint.
#[test]
fn audiences_belong_to_endpoints() {
    let (first, second) = (APPLICATION, "api://contoso/other");
    let (_, to) = issuer_with(&format!(
        "audiences = {{ \"/mcp\" = [\"{first}\"], \"/other\" = [\"{second}\"] }}"
    ));
    let plan = check(&two_resources(&to)).unwrap();
    let audiences: Vec<_> = plan.issuers[0]
        .settings
        .audiences
        .iter()
        .map(|audience| (audience.resource.as_str(), audience.name.as_str()))
        .collect();
    assert_eq!(
        audiences,
        [
            ("https://mcp.example.com/mcp", first),
            ("https://mcp.example.com/other", second),
        ]
    );
    let without_scopes = two_resources(&to).replace("required_scopes = [\"mcp:other\"]\n", "");
    let message = format!("{:#}", check(&without_scopes).err().expect("an error"));
    assert!(message.contains("required_scopes is empty"), "{message}");
    assert!(message.contains(second), "{message}");
}

/// C6: an audience that names two resources, or none, is an error.
#[test]
fn an_audience_names_one_resource() {
    let upper = APPLICATION.to_uppercase();
    for (other, expected) in [
        (upper.as_str(), "so that a token for one would be accepted"),
        (
            "https://mcp.example.com/mcp/",
            "it also names https://mcp.example.com/mcp",
        ),
    ] {
        let (_, to) = issuer_with(&format!(
            "audiences = {{ \"/mcp\" = [\"{APPLICATION}\"], \"/other\" = [\"{other}\"] }}"
        ));
        let message = error_with_two(&to);
        assert!(message.contains(expected), "{other}: {message}");
    }
    let (_, to) = issuer_with("audiences = { \"/oter\" = [\"api://contoso/mcp\"] }");
    let message = error_with_two(&to);
    assert!(
        message.contains("\"/oter\", which no [[resource]] has; write one of \"/mcp\", \"/other\""),
        "{message}"
    );
}

const APPLICATION: &str = "11112222-bbbb-3333-cccc-4444dddd5555";

/// Returns a configuration with two resources and this issuer.
fn two_resources(issuer: &str) -> String {
    let (from, _) = issuer_with("");
    let second = "[[resource]]\nendpoint = \"/other\"\nupstream = \"demo\"\nrequired_scopes = [\"mcp:other\"]\n";
    with_lines(second).replace(from, issuer)
}

fn error_with_two(issuer: &str) -> String {
    format!(
        "{:#}",
        check(&two_resources(issuer)).err().expect("an error")
    )
}

/// C6: the issuer's own name for the resource needs required scopes and causes a warning.
#[test]
fn own_names_need_required_scopes() {
    let issuer = "issuer = \"https://auth.example.com/realms/prod\"";
    for name in [APPLICATION, "api://contoso/mcp"] {
        let named = GOOD.replace(issuer, &format!("{issuer}\naudiences = [\"{name}\"]"));
        let without = named.replace("required_scopes = [\"mcp:tools\"]\n", "");
        let plan = check(&named).unwrap();
        assert_eq!(plan.issuers[0].settings.audiences[0].name.as_str(), name);
        assert!(
            plan.warnings
                .iter()
                .any(|warning| warning.text.starts_with("issuer[0].audiences has")),
            "{:?}",
            plan.warnings
        );
        let message = format!("{:#}", check(&without).err().expect("an error"));
        assert!(message.contains("required_scopes is empty"), "{message}");
        assert!(message.contains(name), "{message}");
    }
}

/// C8: claims that count as scopes are configured per issuer and validated.
#[test]
fn scope_claims_are_configured() {
    let (from, to) = issuer_with("scope_claims = [\"permissions\", \"/realm_access/roles\"]");
    let plan = check(&GOOD.replace(from, &to)).unwrap();
    assert_eq!(
        plan.issuers[0].settings.scope_claims,
        ["permissions", "/realm_access/roles"]
    );
    for claim in ["", "scope", "/a~2"] {
        let (from, to) = issuer_with(&format!("scope_claims = [\"{claim}\"]"));
        assert!(error(from, &to).contains("scope_claims"), "{claim}");
    }
}

/// J2: an issuer with user and password is in no message, also where it is listed again.
#[test]
fn secrets_in_issuers_are_not_printed() {
    let with_password = "https://me:hunter2@auth.example.com/realms/prod";
    let twice = format!("[[issuer]]\nissuer = \"{with_password}\"\n").repeat(2);
    let listed = format!(
        "{twice}[[resource]]\nissuers = [\"{with_password}\", \"{with_password}/\", \"me:hunter2@x\"]"
    );
    let message = format!(
        "{:#}",
        check(&GOOD.replace("[[resource]]", &listed))
            .err()
            .expect("an error")
    );
    for wanted in [
        "\"https://…@auth.example.com/realms/prod\" is configured twice",
        "issuers has \"https://…@auth.example.com/realms/prod/\", and no [[issuer]] has exactly this identifier; write it as \
         there, \"https://…@auth",
        "issuers has \"…@x\", and no [[issuer]] has exactly this identifier; add or correct it",
    ] {
        assert!(message.contains(wanted), "{wanted}: {message}");
    }
    assert!(!message.contains("hunter2"), "{message}");
}

/// J9, J10: a `ca_file` that is too large to be compared at a reload is rejected.
#[test]
fn a_ca_file_has_a_maximum_size() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len((4 << 20) + 1).unwrap();
    let ca_file = format!("ca_file = \"{}\"", file.path().display());
    let message = error("[[resource]]", &format!("{ca_file}\n[[resource]]"));
    assert!(
        message.contains("issuer[0].ca_file has more than 4 MiB; name another file"),
        "{message}"
    );
    let traces = with_lines(&format!(
        "[traces]\nendpoint = \"http://127.0.0.1:1\"\n{ca_file}"
    ));
    let message = format!("{:#}", check(&traces).err().expect("an error"));
    assert!(
        message.contains("ca_file has more than 4 MiB; name another file"),
        "{message}"
    );
}

/// J9: the values of introspection are checked together with its secret.
#[test]
fn all_errors_of_introspection_are_found() {
    let issuer = "issuer = \"https://auth.example.com/realms/prod\"";
    let lines = format!(
        "{issuer}\nvalidate = \"introspection\"\nclient_id = \"\"\nclient_secret = {{ env = \"NO_SUCH_SECRET\" }}\n\
         introspection_auth = \"basic\"\nintrospection_endpoint = \"x\"\nintrospection_cache = \"5m\"\n\
         introspection_in_flight = 0\nleeway = \"5m\""
    );
    let found = check(&GOOD.replace(issuer, &lines))
        .err()
        .unwrap()
        .to_string();
    let mut keys: Vec<&str> = found
        .lines()
        .filter_map(|line| line.split([':', ' ']).next()?.strip_prefix("issuer[0]."))
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "client_id",
            "client_secret",
            "introspection_cache",
            "introspection_endpoint",
            "introspection_in_flight",
            "leeway",
        ],
        "{found}"
    );
}
