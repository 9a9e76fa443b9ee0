//! Spellings of URIs.

use proptest::prelude::*;

use super::*;

fn spellings(uri: &str) -> Vec<String> {
    let mut spellings = Spellings::default();
    spellings
        .add(uri)
        .unwrap_or_else(|error| panic!("{uri}: {error:?}"));
    spellings.all
}

fn assert_has_spelling(uri: &str, expected: &str) {
    let spellings = spellings(uri);
    assert!(
        spellings
            .iter()
            .any(|spelling| spelling.eq_ignore_ascii_case(expected)),
        "{uri}: {spellings:?}"
    );
}

/// F12: the spellings of a URI include every form that a server could resolve to the same resource.
#[test]
fn equivalent_uris_share_a_spelling() {
    for alias in [
        "file:///secret/x",
        "FILE:///secret/x",
        "file:/secret/x",
        "file:secret/x",
        "file://localhost/secret/x",
        "file://LocalHost/secret/x",
        "file://elsewhere/secret/x",
        "file:///%73ecret/x",
        "file:///%2573ecret/x",
        "file:///secret%2fx",
        "file:///sec%09ret/x",
        "file:///sec%0Aret/x",
        "file:///%25%373ecret/x",
        "file:///secret%255cx",
        "%20file:///secret/x",
        "file:////secret/x",
        "file:///secret//x",
        "file:///secret/x?y",
        "file:///secret/x#y",
        "file:///secret/x%3Fy",
        "file:///secret/x%23y",
        "file:///secret/x/",
        "file:///secret/x//",
        "file:///secret/x%2F",
        "file://u@h/secret/x",
        "file://h:80/secret/x",
        "FILE://h h/secret/%78",
    ] {
        assert_has_spelling(alias, "file:///secret/x");
    }
}

/// F12: URIs of other schemes are decoded and normalized, too.
#[test]
fn other_schemes_share_a_spelling() {
    for (alias, expected) in [
        ("HTTPS://User:pw@HOST:443/secret?q", "https://host/secret"),
        ("https://host/%73ecret", "https://host/secret"),
        ("note://secret/%61", "note://secret/a"),
        ("note://host//a///b", "note://host/a/b"),
        ("a/b://c//d", "a/b:/c/d"),
        ("a/b://c//d", "a/b://c/d"),
        ("my_app://host//secret/x", "my_app://host/secret/x"),
        ("my_app://host//secret/x", "my_app:/host/secret/x"),
        ("1note:////a//%62", "1note:///a/b"),
        ("my_app://host/secret?q", "my_app://host/secret"),
        ("my_app://host/secret%23q", "my_app://host/secret"),
        ("note:%73ecret", "note:secret"),
        ("secret%2Fx", "secret/x"),
    ] {
        assert_has_spelling(alias, expected);
    }
}

/// F12: the parts of a URI that do not select a resource are removed in every combination.
#[test]
fn every_combination_of_parts_is_removed() {
    let equivalent = ["", ":80", "."].map(|end| format!("note://vault{end}/x"));
    for uri in [
        "note://vault.:80/x;v=1",
        "note://u@VAULT.:080/x;v=1/?q",
        "note://vault%2E%3A80/%78%3Bv",
    ] {
        for expected in &equivalent {
            assert_has_spelling(uri, expected);
        }
    }
    for (alias, expected) in [
        ("note://vault:80/x", "note://vault/x"),
        ("note://vault:80", "note://vault"),
        ("note://vault:99999/x", "note://vault/x"),
        ("note://vault:http/x", "note://vault/x"),
        ("note://u:p@vault:99999/x", "note://vault/x"),
        ("https://host:8443/x", "https://host/x"),
        ("https://host.:8443/x", "https://host:8443/x"),
        ("https://host./x", "https://host/x"),
        ("https:host%2e/x", "https://host/x"),
        ("https://[::1]:8443/x", "https://[::1]/x"),
        ("my_app://vault.:80/x", "my_app://vault/x"),
        ("note://vault/a;v=1/b;w", "note://vault/a/b"),
        ("note://vault/a%3Bv=1/b", "note://vault/a/b"),
        ("note://vault/;v/b", "note://vault/b"),
        ("note:a;v/b", "note:a/b"),
        ("file:///secret;v/x;w", "file:///secret/x"),
        (
            "https://b\u{fc}cher.example/x",
            "https://xn--bcher-kva.example/x",
        ),
        (
            "https://xn--bcher-kva.example/x",
            "https://b\u{fc}cher.example/x",
        ),
        (
            "https://b%C3%BCcher.example.:444/x;v",
            "https://xn--bcher-kva.example/x",
        ),
        ("note://B\u{dc}CHER.:80/x;v", "note://xn--bcher-kva/x"),
        ("note://B\u{dc}CHER.:80/x;v", "note://b\u{fc}cher/x"),
        ("note://bu\u{308}cher/x", "note://b\u{fc}cher/x"),
        ("note://xn--bcher-kva:1/x", "note://b\u{fc}cher/x"),
        ("note://va\u{ad}ult/x", "note://vault/x"),
    ] {
        assert_has_spelling(alias, expected);
    }
}

/// F12: a URI that differs in every way from its plain spelling still has few enough spellings.
#[test]
fn realistic_uris_have_few_spellings() {
    for uri in [
        "HTTPS://User@B\u{fc}cher.Example.:8443/a%20b;v=1/c?q#f",
        "note://B%C3%BCcher.:8443/a;v=1/c?q",
        "file://server.example.:80/a%20b;v=1/c/",
    ] {
        let count = spellings(uri).len();
        assert!(count <= MAX_SPELLINGS / 2, "{uri}: {count}");
    }
}

/// F12: a dot segment before parameters is rejected.
#[test]
fn dot_segments_with_parameters_are_rejected() {
    for uri in [
        "note://public/..;v=1/secret",
        "note://public/%2e%2e%3Bv/secret",
        "note:public/.;/secret",
    ] {
        assert_eq!(
            Spellings::default().add(uri),
            Err(UriError::DotSegments),
            "{uri}"
        );
    }
}

/// F12: a plain URI has one spelling. A URI with too many spellings is rejected.
#[test]
fn the_work_is_bounded() {
    assert_eq!(
        spellings("file:///public/readme.txt"),
        ["file:///public/readme.txt"]
    );
    let nested_escapes = format!("file:///%{}2e", "25".repeat(150));
    assert_eq!(
        Spellings::default().add(&nested_escapes),
        Err(UriError::TooManySpellings)
    );
    let long = format!("file:///{}", "a".repeat(MAX_BYTES));
    assert_eq!(
        Spellings::default().add(&long),
        Err(UriError::TooManySpellings)
    );
    let long_host = format!("note://{}/", "\u{fc}".repeat(300));
    assert_eq!(
        Spellings::default().add(&long_host),
        Err(UriError::TooManySpellings)
    );
    let mut many = Spellings::default();
    let results: Vec<_> = (0..1000)
        .map(|number| many.add(&format!("file:///{number}{}", "a".repeat(2000))))
        .collect();
    assert!(results.first() == Some(&Ok(())));
    assert!(results.last() == Some(&Err(UriError::TooManySpellings)));
}

/// F12: a URI with an encoded NUL is rejected.
#[test]
fn an_encoded_nul_is_rejected() {
    assert_eq!(
        Spellings::default().add("file:///secret/x%2500.txt"),
        Err(UriError::Characters)
    );
}

/// F12: a URI with characters that URL parsers remove or replace is rejected.
#[test]
fn characters_that_parsers_change_are_rejected() {
    for bad in [
        " file:///x",
        "file:///x ",
        "\tfile:///x",
        "file:///\tx",
        "file:///x\n",
        "file:///\r\nx",
        "file:///\u{0}x",
        "file:///\u{7f}x",
        "file:///\u{85}x",
        "file:///public\\..\\x",
        "\u{a0}file:///x",
        "file:///x\u{2028}",
        "\u{feff}file:///x",
    ] {
        assert_eq!(check_characters(bad), Err(UriError::Characters), "{bad:?}");
    }
    for good in [
        "",
        "file:///x",
        "file:///a b",
        "note:\u{e4}",
        "file:///{path}",
    ] {
        assert_eq!(check_characters(good), Ok(()), "{good:?}");
    }
}

proptest! {
    /// F12: the spellings of a URI include its WHATWG form and the percent-decoded form of that.
    #[test]
    fn the_normal_forms_are_included(path in "[a-c./%2eEfF5-]{0,24}") {
        let uri = format!("file:///{path}");
        let mut found = Spellings::default();
        if found.add(&uri).is_ok() {
            let url = Url::parse(&uri).unwrap();
            let decoded = percent_decode_str(url.as_str()).decode_utf8_lossy();
            let has = |text: &str| found.iter().any(|spelling| spelling.eq_ignore_ascii_case(text));
            prop_assert!(has(&uri));
            prop_assert!(has(url.as_str()));
            prop_assert!(has(&decoded));
            let path = percent_decode_str(url.path()).decode_utf8_lossy();
            let without_host = ["file://", &path].concat();
            prop_assert!(has(&without_host));
        }
    }

    #[test]
    fn no_text_panics(uri in any::<String>()) {
        let _ = (check_characters(&uri), Spellings::default().add(&uri));
    }
}
