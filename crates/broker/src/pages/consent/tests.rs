use super::*;
use crate::pages::testing;

const HOSTILE: &str = "\"><script>alert('1')</script>&\u{202e}";

/// What an example page is made of.
struct Example {
    redirect: RedirectTarget,
    providers: Vec<(&'static str, &'static str)>,
    document_host: Option<&'static str>,
    name: Option<&'static str>,
    is_remember_offered: bool,
}

impl Example {
    fn new(redirect_uri: &str) -> Self {
        Self {
            redirect: RedirectTarget::parse(redirect_uri).unwrap(),
            providers: vec![("entra", "Microsoft")],
            document_host: None,
            name: Some("Claude Code"),
            is_remember_offered: false,
        }
    }

    fn document(redirect_uri: &str, host: &'static str) -> Self {
        Self {
            document_host: Some(host),
            ..Self::new(redirect_uri)
        }
    }

    fn render(&self) -> Page {
        self.render_with(|_| ())
    }

    fn render_with(&self, change: impl Fn(&mut ConsentPage<'_>)) -> Page {
        let providers: Vec<_> = self
            .providers
            .iter()
            .map(|(name, display_name)| ProviderView { name, display_name })
            .collect();
        let mut page = ConsentPage {
            client: ClientView {
                document_host: self.document_host,
                name: self.name,
            },
            redirect: &self.redirect,
            resource: ResourceView {
                name: Some("Team files"),
                url: "https://mcp.example.com/files",
            },
            scopes: &[
                ScopeView {
                    name: "files:read",
                    description: Some("Read your files"),
                },
                ScopeView {
                    name: "files:write",
                    description: None,
                },
            ],
            providers: &providers,
            is_remember_offered: self.is_remember_offered,
            is_remote_offered: false,
            request: "c2VhbGVk",
        };
        change(&mut page);
        testing::render(|layout| page.render(layout))
    }
}

fn assert_contains(page: &Page, text: &str) {
    assert!(page.html.contains(text), "{text}\n{}", page.html);
}

fn policy(page: &Page) -> String {
    page.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned()
}

/// RG5: a client cannot put its name in the place of its host.
#[test]
fn the_host_precedes_the_name() {
    let page = Example::new("https://claude.ai/api/callback").render();
    assert_contains(&page, r#"<h1><span class="host">claude.ai</span> asks for"#);
    assert_contains(
        &page,
        r#"It calls itself <bdi class="name">Claude Code</bdi>"#,
    );
    assert!(page.html.find("claude.ai") < page.html.find("Claude Code"));
    assert_contains(
        &page,
        "<title>Allow access for claude.ai? · Example</title>",
    );
}

#[test]
fn a_document_is_named_by_its_host() {
    let page = Example::document("https://callback.example/", "app.example").render();
    assert_contains(&page, r#"<span class="host">app.example</span>"#);
    assert_contains(
        &page,
        r#"<code>callback.example</code> <span class="soft place">on another machine"#,
    );
}

/// RG5: a host that looks like another one.
#[test]
fn hosts_are_shown_in_ascii() {
    let page = Example::new("https://cl\u{430}ude.ai/").render();
    assert_contains(&page, r#"<span class="host">xn--clude-5ve.ai</span>"#);
    let page = Example::document("https://a.example/", "cl\u{430}ude.ai").render();
    assert_contains(&page, r#"<span class="host">cl\u{430}ude.ai</span>"#);
    assert!(!page.html.contains('\u{430}'));
}

/// DO5: another program uses a document with its own port.
#[test]
fn a_local_redirect_has_a_warning() {
    for redirect in [
        "http://127.0.0.1:4321/callback",
        "http://localhost:4321/",
        "http://[::1]/",
        "cursor://anysphere.cursor-mcp/callback",
    ] {
        let page = Example::new(redirect).render();
        assert_contains(&page, "Any program on this computer could be asking. ");
        let page = Example::document(redirect, "claude.ai").render();
        assert_contains(
            &page,
            "Any program on this computer could be asking in the name of claude.ai.",
        );
    }
    let page = Example::document("https://claude.ai/", "claude.ai").render();
    assert!(!page.html.contains("Any program on this computer"));
}

#[test]
fn the_page_shows_where_the_answer_goes() {
    for (redirect, expected) in [
        ("https://claude.ai/api/callback", "<code>claude.ai</code>"),
        ("http://127.0.0.1:4321/", "<code>127.0.0.1:4321</code>"),
        (
            "cursor://anysphere.cursor-mcp/oauth",
            "<code>cursor://anysphere.cursor-mcp</code>",
        ),
    ] {
        assert_contains(&Example::new(redirect).render(), expected);
    }
}

#[test]
fn scopes_are_shown_in_the_operators_words() {
    let page = Example::new("https://claude.ai/").render();
    assert_contains(&page, "<li>Read your files</li>");
    assert_contains(&page, "<li><code>files:write</code></li>");
    assert_contains(
        &page,
        "<bdi>Team files</bdi> <code>https://mcp.example.com/files</code>",
    );
    let page = Example::new("https://claude.ai/").render_with(|page| page.scopes = &[]);
    assert_contains(&page, "<dd>Everything that you can do there</dd>");
}

/// CO6: everything that a page shows is text.
#[test]
fn every_text_is_escaped() {
    let escaped = "&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;";
    let changes: [fn(&mut ConsentPage<'_>); 8] = [
        |page| page.client.name = Some(HOSTILE),
        |page| page.client.document_host = Some(HOSTILE),
        |page| page.resource.name = Some(HOSTILE),
        |page| page.resource.url = HOSTILE,
        |page| page.request = HOSTILE,
        |page| {
            page.scopes = &[ScopeView {
                name: HOSTILE,
                description: None,
            }];
        },
        |page| {
            page.scopes = &[ScopeView {
                name: "a",
                description: Some(HOSTILE),
            }];
        },
        |page| {
            page.resource.name = None;
            page.resource.url = HOSTILE;
        },
    ];
    for change in changes {
        let page = Example::new("https://claude.ai/").render_with(change);
        assert!(!page.html.contains("<script"), "{}", page.html);
        assert_contains(&page, escaped);
    }
}

#[test]
fn a_name_that_changes_the_writing_direction_is_shown_without_it() {
    let mut example = Example::new("https://claude.ai/");
    example.name = Some("\u{202e}edualC\u{2066} \u{200b}");
    assert_contains(&example.render(), r#"<bdi class="name">edualC</bdi>"#);
    for name in [None, Some("\u{200b}")] {
        example.name = name;
        assert_contains(&example.render(), "<p>It has no name.</p>");
    }
}

#[test]
fn the_form_has_one_button_for_each_provider_and_one_to_deny() {
    let mut example = Example::new("https://claude.ai/");
    example.providers.push(("deny", "Deny & Co."));
    let page = example.render();
    assert_contains(&page, r#"<form method="post" action="/oauth/consent">"#);
    assert_contains(
        &page,
        r#"<input type="hidden" name="request" value="c2VhbGVk">"#,
    );
    for (value, label) in [
        ("allow:entra", "Continue with Microsoft"),
        ("allow:deny", "Continue with Deny &amp; Co."),
    ] {
        assert_contains(
            &page,
            &format!(r#"<button class="allow" name="decision" value="{value}">{label}</button>"#),
        );
    }
    assert_contains(
        &page,
        r#"<button name="decision" value="deny">Deny</button>"#,
    );
    assert_eq!(page.html.matches("<button").count(), 3);
}

/// CO5: a consent is remembered only for a document with an `https` redirect.
#[test]
fn remembering_is_offered_only_for_documents_with_a_web_redirect() {
    for (mut example, expected) in [
        (Example::document("https://claude.ai/", "claude.ai"), true),
        (Example::new("https://claude.ai/"), false),
        (Example::document("http://127.0.0.1/", "claude.ai"), false),
        (Example::document("cursor://a/", "claude.ai"), false),
    ] {
        example.is_remember_offered = true;
        let html = example.render().html;
        assert_eq!(html.contains(r#"name="remember""#), expected);
        example.is_remember_offered = false;
        assert!(!example.render().html.contains(r#"name="remember""#));
    }
}

/// CO6: the form goes to this server and nowhere else.
#[test]
fn the_policy_allows_only_this_server() {
    let page = Example::new("cursor://anysphere.cursor-mcp/callback").render();
    let expected = "form-action 'self'; ";
    assert!(policy(&page).contains(expected), "{}", policy(&page));
    assert_eq!(page.headers()["referrer-policy"], "same-origin");
}

/// The address of the user's own computer does not say who asks.
#[test]
fn a_loopback_client_is_a_program_on_this_computer() {
    for uri in [
        "http://127.0.0.1:4321/",
        "http://[::1]/",
        "http://localhost/",
    ] {
        let page = Example::new(uri).render();
        assert_contains(
            &page,
            r#"<h1><span class="host">A program on this computer</span> asks for"#,
        );
    }
}

/// CO9: the answer is displayed only if the operator offers that.
#[test]
fn another_machine_is_offered_by_the_operator() {
    let example = Example::new("http://127.0.0.1:4321/callback");
    let box_of = |page: Page| page.html.contains(r#"name="remote""#);
    assert!(!box_of(example.render()));
    assert!(box_of(
        example.render_with(|page| page.is_remote_offered = true)
    ));
}
