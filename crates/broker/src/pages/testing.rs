//! What the tests of pages share: an example layout, and a check that HTML is well-formed.

use std::collections::HashSet;

use portcullis_metadata::Issuer;

use crate::{
    PageSettings,
    pages::{Layout, headers::Page},
};

/// Elements without an end tag.
const VOID: [&str; 4] = ["img", "input", "meta", "br"];

pub(super) fn issuer() -> Issuer {
    Issuer::parse("https://mcp.example.com").unwrap()
}

/// Renders a page twice, checks that both are equal and well-formed, and returns one.
pub(super) fn render(render: impl Fn(&Layout) -> Page) -> Page {
    let settings = PageSettings {
        name: Some("Example".into()),
        ..PageSettings::default()
    };
    let layout = Layout::new(&settings, &issuer());
    let page = render(&layout);
    assert_eq!(page, render(&Layout::new(&settings, &issuer())));
    assert_well_formed(&page.html);
    page
}

/// Panics if an element is not closed, an attribute is not quoted or could run script, an `id` is
/// repeated or missing, or the headings are not in order.
pub(super) fn assert_well_formed(html: &str) {
    let mut rest = html.strip_prefix("<!doctype html>\n").unwrap();
    let mut open: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    let mut references = Vec::new();
    let mut level = 0;
    while let Some((text, after)) = rest.split_once('<') {
        assert!(
            !text.contains('>') || open.last() == Some(&"style"),
            "{text}"
        );
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert_ne!(name, "script");
        for (attribute, value) in parse_attributes(attributes) {
            assert!(
                !attribute.starts_with("on") && attribute != "style",
                "{tag}"
            );
            match attribute {
                "id" => assert!(ids.insert(value), "{value} is repeated"),
                "for" | "aria-labelledby" => references.push(value),
                "src" => assert!(value.starts_with("data:"), "{value}"),
                _ => {}
            }
        }
        if let Some(heading) = name.strip_prefix('h').and_then(|level| level.parse().ok()) {
            assert!(heading <= level + 1, "h{heading} after h{level}");
            level = heading;
        }
        if !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(rest, "\n");
    assert!(open.is_empty(), "{open:?}");
    assert!(level > 0, "no heading");
    for reference in references {
        assert!(ids.contains(reference), "{reference} is missing");
    }
}

fn parse_attributes(mut text: &str) -> Vec<(&str, &str)> {
    let mut attributes = Vec::new();
    while !text.is_empty() {
        let end = text.find([' ', '=']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        assert!(!name.is_empty() && name.bytes().all(is_name), "{text}");
        let (value, rest) = match rest.strip_prefix('=') {
            Some(value) => value.strip_prefix('"').unwrap().split_once('"').unwrap(),
            None => ("", rest),
        };
        attributes.push((name, value));
        assert!(rest.is_empty() || rest.starts_with(' '), "{rest}");
        text = rest.trim_start();
    }
    attributes
}

#[test]
fn the_check_finds_each_defect() {
    for body in [
        "<p>",
        "<p></div>",
        "<p>a > b</p>",
        "<p id=a></p>",
        r#"<p id="a"></p><p id="a"></p>"#,
        r#"<label for="a"></label>"#,
        r#"<p onclick="a()"></p>"#,
        r#"<img src="https://a.example/">"#,
        "<script></script>",
        "<h3></h3>",
    ] {
        let html = format!("<!doctype html>\n<html><h1></h1>{body}</html>\n");
        let result = std::panic::catch_unwind(|| assert_well_formed(&html));
        assert!(result.is_err(), "{body}");
    }
    assert_well_formed("<!doctype html>\n<html><h1 id=\"a\" hidden class=\"b\"></h1></html>\n");
}
