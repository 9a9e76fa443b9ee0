//! Resources: endpoints, origins, sessions and revisions.

use super::{GOOD, check, error, with_lines};
use crate::plan::*;

/// A1: a resource without an issuer is rejected.
#[test]
fn a_resource_needs_an_issuer() {
    let issuer = "[[issuer]]\nissuer = \"https://auth.example.com/realms/prod\"\n";
    assert!(error(issuer, "").contains("add an [[issuer]]"));
    let message = error(
        "required_scopes",
        "issuers = [\"https://auth.example.com/realms/prod/\"]\nrequired_scopes",
    );
    assert!(message.contains("exactly this identifier"), "{message}");
    assert!(error("required_scopes", "issuers = []\nrequired_scopes").contains("no issuer"));
    let issuer = "\"https://auth.example.com/realms/prod\"";
    let message = error(
        "required_scopes",
        &format!("issuers = [{issuer}, {issuer}]\nrequired_scopes"),
    );
    assert!(
        message.starts_with(&format!(
            "resource[0].issuers has {issuer} twice; remove one"
        )),
        "{message}"
    );
}

/// A3: endpoints that differ only in letter case or a trailing slash are rejected. At most one
/// resource is the default.
#[test]
fn similar_endpoints_are_rejected() {
    let second = |endpoint: &str| {
        with_lines(&format!(
            "[[resource]]\nendpoint = \"{endpoint}\"\nupstream = \"demo\""
        ))
    };
    for similar in ["/mcp", "/MCP", "/mcp/"] {
        let message = format!("{:#}", check(&second(similar)).err().expect("an error"));
        assert!(message.contains("rename one"), "{message}");
    }
    let plan = check(&second("/other")).unwrap();
    assert!(
        plan.resources
            .iter()
            .all(|resource| !resource.root_metadata),
        "there is no default resource"
    );

    let two = second("/other").replace("required_scopes", "default = true\nrequired_scopes");
    let plan = check(&two).unwrap();
    assert_eq!(
        plan.resources
            .iter()
            .map(|resource| resource.root_metadata)
            .collect::<Vec<_>>(),
        [true, false]
    );
    let root = second("/").replace("required_scopes", "default = true\nrequired_scopes");
    let message = format!("{:#}", check(&root).err().expect("an error"));
    assert!(
        message.starts_with("resource[0].default = true serves the metadata at the root metadata path, which is that of resource[1]"),
        "{message}"
    );
    check(&format!("{}\ndefault = true", second("/"))).unwrap();
    check(&second("/")).unwrap();

    let three = format!(
        "{two}\ndefault = true\n[[resource]]\nendpoint = \"/third\"\nupstream = \"demo\"\ndefault = true"
    );
    let message = format!("{:#}", check(&three).err().expect("an error"));
    let expected = [1, 2].map(|position| {
        format!("resource[{position}].default = true is also set for resource[0]; ")
    });
    assert!(
        message
            .lines()
            .zip(&expected)
            .all(|(line, expected)| line.starts_with(expected)),
        "{message}"
    );
    assert_eq!(message.lines().count(), 2, "{message}");
}

/// The realm follows the rule of the guard, and an error names its key.
#[test]
fn invalid_realms_are_rejected() {
    let with_realm = |realm: &str| format!("realm = \"{realm}\"\nrequired_scopes");
    assert!(check(&GOOD.replace("required_scopes", &with_realm(&"x".repeat(256)))).is_ok());
    for (realm, fix) in [
        ("", "write a name, or remove it"),
        ("\u{e9}", "write it without other characters"),
        (&"x".repeat(257), "shorten it"),
    ] {
        let message = error("required_scopes", &with_realm(realm));
        assert!(
            message.contains(&format!(
                "realm must be 1 to 256 printable ASCII characters; {fix}"
            )),
            "{message}"
        );
    }
}

/// A5: `offline_access` is not a scope of a resource.
#[test]
fn offline_access_is_rejected() {
    assert!(error("\"mcp:tools\"", "\"offline_access\"").contains("offline_access"));
    assert!(
        error(
            "required_scopes",
            "scopes_supported = [\"offline_access\"]\nrequired_scopes"
        )
        .contains("offline_access")
    );
    let rule =
        with_lines("[[resource.rule]]\nmethod = \"tools/call\"\nscopes = [\"offline_access\"]");
    assert!(format!("{:#}", check(&rule).err().expect("an error")).contains("offline_access"));
}

/// F7: no authorization on an open network needs a second setting.
#[test]
fn no_authorization_stays_on_loopback() {
    let off = GOOD.replace("required_scopes", "auth = \"none\"\nrequired_scopes");
    let plan = check(&off).unwrap();
    assert!(
        plan.warnings
            .iter()
            .any(|warning| warning.text.contains("anyone who can reach it")),
        "{:?}",
        plan.warnings
    );
    let open = off.replace("127.0.0.1:0", "0.0.0.0:0");
    let message = format!("{:#}", check(&open).err().expect("an error"));
    assert!(
        message.contains("remove auth to require tokens")
            && message.contains("dangerous_allow_unauthenticated_network = true"),
        "{message}"
    );
    assert!(
        check(&format!(
            "dangerous_allow_unauthenticated_network = true\n{open}"
        ))
        .is_ok()
    );
}

/// F1: the endpoint is a plain path.
#[test]
fn endpoints_are_plain_paths() {
    for endpoint in [
        "mcp",
        "/a b",
        "/a?b",
        "/a#b",
        "//a",
        "/a//b",
        "/../a",
        "/.well-known/x",
        "/healthz",
        "/readyz",
        "",
    ] {
        assert!(
            error("\"/mcp\"", &format!("{endpoint:?}")).contains("endpoint"),
            "{endpoint}"
        );
    }
    for endpoint in [
        "/", "/mcp/v1", "/mcp/", "/a%20b", "/%C3%A9", "/a%2Fb", "/100%25", "/...", "/.a",
    ] {
        assert!(
            check(&GOOD.replace("\"/mcp\"", &format!("{endpoint:?}"))).is_ok(),
            "{endpoint}"
        );
    }
}

/// F1: clients decode escapes of unreserved characters, and then remove dot segments.
#[test]
fn endpoints_have_no_needless_escapes() {
    for (endpoint, expected) in [
        (
            "/%6dcp",
            "%6d, which clients rewrite to 'm'; write 'm' itself",
        ),
        ("/%6Dcp", "write 'm' itself"),
        ("/a/%2e%2e/mcp", "write '.' itself"),
        ("/%2E/mcp", "write '.' itself"),
        ("/mcp%7E", "write '~' itself"),
        ("/a%20b%5f", "write '_' itself"),
        (
            "/%zz",
            "without two hexadecimal digits; write the character % as %25",
        ),
        ("/%+f", "without two hexadecimal digits"),
        ("/a%2", "without two hexadecimal digits"),
        ("/a%", "without two hexadecimal digits"),
        ("/%%41", "without two hexadecimal digits"),
        ("/./mcp", "a dot segment"),
        ("/mcp/.", "a dot segment"),
        ("/a//mcp", "an empty or a dot segment"),
    ] {
        let message = error("\"/mcp\"", &format!("{endpoint:?}"));
        assert!(message.contains(expected), "{endpoint}: {message}");
    }
}

/// F2, F3: a list restricts the origins of a resource; an empty list allows none. Other paths are
/// restricted only if every resource has a list.
#[test]
fn origins_are_restricted_to_the_list() {
    let admits = |policy: &OriginPolicy, origin: &'static str| {
        let mut headers = http::HeaderMap::new();
        headers.insert(
            http::header::HOST,
            http::HeaderValue::from_static("mcp.example.com"),
        );
        headers.insert(http::header::ORIGIN, http::HeaderValue::from_static(origin));
        policy
            .check(
                http::Version::HTTP_11,
                &http::Uri::from_static("/mcp"),
                &headers,
            )
            .is_ok()
    };
    let listed = |list: &str| {
        GOOD.replace(
            "required_scopes",
            &format!("allowed_origins = {list}\nrequired_scopes"),
        )
    };
    let app = "https://app.example";
    let other = "https://other.example";

    let plan = check(GOOD).unwrap();
    assert!(admits(&plan.resources[0].origins, other));
    assert!(admits(&plan.origins, other));
    let plan = check(&listed("[\"https://app.example\"]")).unwrap();
    assert!(admits(&plan.resources[0].origins, app));
    assert!(!admits(&plan.resources[0].origins, other));

    let plan = check(&listed("[]")).unwrap();
    assert!(!admits(&plan.resources[0].origins, app));
    assert!(!admits(&plan.origins, app));

    let second = "[[resource]]\nendpoint = \"/other\"\nupstream = \"demo\"";
    let plan = check(&format!("{}\n{second}", listed("[]"))).unwrap();
    assert!(!admits(&plan.resources[0].origins, app));
    assert!(admits(&plan.resources[1].origins, app));
    assert!(admits(&plan.origins, app), "one resource allows it");
}

/// E1: the session header has the configured prefix.
#[test]
fn the_session_header_is_configurable() {
    let plan =
        check(&GOOD.replace("required_scopes", "proto = \"Acme\"\nrequired_scopes")).unwrap();
    assert_eq!(plan.resources[0].session_header, "acme-session-id");
    for proto in ["", "a b", "a:b"] {
        assert!(
            error(
                "required_scopes",
                &format!("proto = {proto:?}\nrequired_scopes")
            )
            .contains("proto"),
            "{proto}"
        );
    }
}

#[test]
fn revisions_are_known_ones() {
    let plan = check(&GOOD.replace(
        "required_scopes",
        "revisions = [\"2026-07-28\"]\nrequired_scopes",
    ))
    .unwrap();
    assert!(!plan.resources[0].revisions.has_legacy());
    assert!(
        error(
            "required_scopes",
            "revisions = [\"2024-11-05\"]\nrequired_scopes"
        )
        .contains("2024-11-05")
    );
    assert!(error("required_scopes", "revisions = []\nrequired_scopes").contains("revisions"));
}

/// L3: a response continues for 15 min after its token by default, and for at most 24 h.
#[test]
fn the_grace_of_responses_has_a_range() {
    let grace = |line: &str| {
        let text = GOOD.replace("required_scopes", &format!("{line}\nrequired_scopes"));
        check(&text).map(|plan| plan.resources[0].response_grace.as_secs())
    };
    for (line, seconds) in [
        ("", 15 * 60),
        ("response_grace = \"0\"", 0),
        ("response_grace = \"0s\"", 0),
        ("response_grace = \"24h\"", 24 * 60 * 60),
    ] {
        assert_eq!(grace(line).unwrap(), seconds, "{line}");
    }
    let message = format!("{:#}", grace("response_grace = \"25h\"").unwrap_err());
    assert!(message.contains("outside 0s to 24h"), "{message}");
}
