//! Scripted answers, without requests.

mod broker;

use std::net::{Ipv4Addr, TcpListener};

use clap::Parser as _;

use super::*;
use crate::init::{questions::tests::answered, template};

fn arguments(more: &[&str]) -> cli::Init {
    parsed(&[&["--offline"], more].concat())
}

fn parsed(arguments: &[&str]) -> cli::Init {
    match cli::Cli::parse_from(["portcullis", "init"].iter().chain(arguments)).command {
        cli::OperatorCommand::Init(arguments) => arguments,
        _ => unreachable!(),
    }
}

#[test]
fn questions_are_asked_in_order() {
    let (questions, shown) =
        answered("\nhttp://127.0.0.1:9100/api\n\n mcp:a  mcp:b\nhttps://a.example/\n");
    let arguments = arguments(&[]);
    let mut setup = Setup::new(&arguments, Product::default(), Some(questions)).unwrap();
    setup.ask_all().unwrap();
    let (values, _) = setup.finish().unwrap();
    let text = template::text(&values);
    for line in [
        "endpoint = \"/api\"",
        "scopes_supported = [\"mcp:a\", \"mcp:b\"]",
        "issuer = \"https://a.example/\"",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let shown = shown.text();
    let places: Vec<_> = [
        "Base URL",
        "MCP server",
        "Endpoint",
        "Scopes",
        "Authorization server",
    ]
    .iter()
    .map(|question| shown.find(question).unwrap())
    .collect();
    assert!(places.is_sorted(), "{shown}");

    for default in [
        "[http://127.0.0.1:3000]",
        "[http://127.0.0.1:8000/mcp]",
        "[/api]",
        "[mcp:tools]",
    ] {
        assert!(shown.contains(default), "{default}\n{shown}");
    }
}

#[test]
fn invalid_answers_are_asked_again_with_the_reason() {
    let lines = "http://mcp.example.com\nhttps://mcp.example.com\n\n\nmcp\n/mcp\n\nauth\nhttps://a.example\n";
    let (questions, shown) = answered(lines);
    let arguments = arguments(&[]);
    let mut setup = Setup::new(&arguments, Product::default(), Some(questions)).unwrap();
    setup.ask_all().unwrap();
    let shown = shown.text();
    assert_eq!(shown.matches("Base URL").count(), 2, "{shown}");
    for reason in [
        "neither https nor http on loopback",
        "must start with a slash",
        "write it as",
    ] {
        assert!(shown.contains(reason), "{reason}\n{shown}");
    }
    assert_eq!(
        setup.finish().unwrap().0.base_url,
        "https://mcp.example.com"
    );
}

/// J5: in a terminal, the proxy of an https base URL is a question, with the address of the
/// listener as its default. An answer can decline it.
#[test]
fn the_proxy_of_an_https_url_is_asked_for() {
    for (answer, line) in [
        ("", "\ntrusted_proxies = [\"127.0.0.1\"]\n"),
        (
            "::1, 10.0.0.0/8",
            "\ntrusted_proxies = [\"::1\", \"10.0.0.0/8\"]\n",
        ),
        ("none", "\n# trusted_proxies = [\"127.0.0.1\"]\n"),
    ] {
        let lines = format!("https://mcp.example.com\n{answer}\n\n\n\nhttps://a.example\n");
        let (questions, shown) = answered(Box::leak(lines.into_boxed_str()));
        let arguments = arguments(&[]);
        let mut setup = Setup::new(&arguments, Product::default(), Some(questions)).unwrap();
        setup.ask_all().unwrap();
        assert!(
            shown.text().contains("or none [127.0.0.1]: "),
            "{}",
            shown.text()
        );
        let text = template::text(&setup.finish().unwrap().0);
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// J9: a program at the address of an http base URL may be a proxy. The server then listens on
/// another port and trusts it.
#[test]
fn a_proxy_at_the_base_url_gets_another_port_behind_it() {
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let base_url = format!("http://{}", held.local_addr().unwrap());
    for (answer, is_proxy) in [("y\n", true), ("n\ny\n", false)] {
        let lines = format!("{base_url}\n{answer}");
        let (questions, shown) = answered(Box::leak(lines.into_boxed_str()));
        let arguments = parsed(&[]);
        let mut setup = Setup::new(&arguments, Product::default(), Some(questions)).unwrap();
        setup.ask_base_url().unwrap();
        let shown = shown.text();
        assert!(
            shown.contains("a proxy in front of this server?"),
            "{shown}"
        );
        let values = setup.answers.values();
        assert_eq!(values.base_url, base_url);
        assert_eq!(values.listen != held.local_addr().unwrap(), is_proxy);
        let proxies: &[&str] = if is_proxy { &["127.0.0.1"] } else { &[] };
        assert_eq!(values.trusted_proxies, proxies);
    }
}

#[test]
fn options_are_not_asked() {
    let (questions, shown) = answered("https://a.example\n");
    let options = [
        "--base-url",
        "http://127.0.0.1:4000",
        "--upstream",
        "http://127.0.0.1:9100/mcp",
        "--endpoint",
        "/x",
        "--scope",
        "a",
    ];
    let arguments = arguments(&options);
    let mut setup = Setup::new(&arguments, Product::default(), Some(questions)).unwrap();
    setup.ask_all().unwrap();
    let shown = shown.text();
    for question in ["Base URL", "MCP server", "Endpoint", "Scopes"] {
        assert!(!shown.contains(question), "{question}\n{shown}");
    }
    assert!(shown.contains("Authorization server"), "{shown}");
    assert_eq!(
        setup.finish().unwrap().0.resource(),
        "http://127.0.0.1:4000/x"
    );
}

/// Behind a proxy, the port is free also after it had to differ from that of the upstream.
#[test]
fn the_port_after_that_of_the_upstream_is_free() {
    let arguments = parsed(&[]);
    let mut setup = Setup::new(&arguments, Product::default(), None).unwrap();
    setup
        .set_base_url("https://mcp.example.com")
        .unwrap_or_else(|rejection| panic!("{}", rejection.into_error("")));
    let upstream = setup.answers.values().listen.port();
    // Another program may already hold it.
    let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, upstream + 1));
    setup
        .set_upstream(&format!("http://127.0.0.1:{upstream}/mcp"))
        .unwrap_or_else(|rejection| panic!("{}", rejection.into_error("")));
    let port = setup.answers.values().listen.port();
    assert!(port > upstream + 1, "{port}");
}

#[test]
fn the_end_of_the_input_ends_the_questions() {
    let (questions, _) = answered("\n\n");
    let arguments = arguments(&[]);
    let mut setup = Setup::new(&arguments, Product::default(), Some(questions)).unwrap();
    let error = setup.ask_all().unwrap_err().to_string();
    assert!(error.contains("nothing is written"), "{error}");
}

#[test]
fn attempts_are_limited() {
    let (questions, _) = answered(Box::leak("x\n".repeat(100).into_boxed_str()));
    let arguments = arguments(&[]);
    let mut setup = Setup::new(&arguments, Product::default(), Some(questions)).unwrap();
    assert!(
        setup
            .ask_all()
            .unwrap_err()
            .to_string()
            .contains("20 attempts")
    );
}

#[test]
fn an_invalid_option_is_named() {
    let arguments = arguments(&["--base-url", "http://mcp.example.com"]);
    let mut setup = Setup::new(&arguments, Product::default(), None).unwrap();
    assert!(
        setup
            .ask_all()
            .unwrap_err()
            .to_string()
            .starts_with("--base-url: ")
    );
}
