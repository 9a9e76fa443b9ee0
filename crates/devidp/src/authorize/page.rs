//! The HTML pages.

use std::fmt::{self, Write};

use portcullis_metadata::Issuer;

use crate::authorize::AuthorizationRequest;

const STYLE: &str = include_str!("page.css");

/// The logo: a gate with bars, in the colour of the text.
const LOGO: &str = r#"<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true"><path d="M4 21V10a8 8 0 0 1 16 0v11"/><path d="M9 4.2V19m6-14.8V19M4.5 10h15M4.5 15h15"/></svg>"#;

/// The page that asks the user to approve an authorization request.
pub(crate) struct ConsentPage<'a> {
    pub(crate) request: &'a AuthorizationRequest,
    pub(crate) user: &'a str,
    pub(crate) ticket: &'a str,
    pub(crate) action: &'a str,
}

impl ConsentPage<'_> {
    pub(crate) fn html(&self, nonce: &str) -> String {
        let client = Escaped(self.request.client.name.as_deref().unwrap_or("An application without a name"));
        let location = if self.request.redirect.is_loopback() { "on this computer" } else { "on another machine" };
        let body = format!(
            r#"<h1>Allow <bdi>{client}</bdi> to act for you?</h1>
<p class="soft">{session_id}</p>
<form method="post" action="{action}">
<dl>
<div><dt>It asks for</dt><dd><ul>{scopes}</ul></dd></div>
<div><dt>At</dt><dd>{resource}</dd></div>
<div><dt>The answer goes to</dt><dd>{authority} <span class="soft place">{location}</span></dd></div>
</dl>
<label for="user">Your user name</label>
<input id="user" name="user" value="{user}" required maxlength="64" autocomplete="off" autocapitalize="none" spellcheck="false">
<p class="soft">Any name will do. There is no password.</p>
<input type="hidden" name="ticket" value="{ticket}">
<div class="buttons">
<button class="allow" name="decision" value="allow">Allow</button>
<button name="decision" value="deny" formnovalidate>Deny</button>
</div>
</form>"#,
            session_id = NameSource(self.request),
            action = Escaped(self.action),
            scopes = ScopeItems(self.request),
            resource = Escaped(self.request.resource.as_str()),
            authority = Escaped(self.request.redirect.authority()),
            user = Escaped(self.user),
            ticket = Escaped(self.ticket),
        );
        render("Allow access?", &body, nonce)
    }
}

/// Renders the page for an error that must not be sent to the redirect URI.
pub(crate) fn error_html(reason: &str, nonce: &str) -> String {
    let body = format!(
        r#"<h1>This request cannot continue</h1>
<p>{reason}</p>
<p class="soft">The application was not notified.</p>"#,
        reason = Escaped(reason)
    );
    render("Request rejected", &body, nonce)
}

/// Renders the page at the issuer's address.
pub(crate) fn home_html(issuer: &Issuer, nonce: &str) -> String {
    let metadata = portcullis_metadata::authorization_server_urls(issuer);
    let metadata = metadata.first().map(|url| url.path().to_owned()).unwrap_or_default();
    let body = format!(
        r#"<h1>Authorization server</h1>
<p>Issuer <code>{issuer}</code></p>
<p>Clients read its <a href="{metadata}">metadata</a>.</p>"#,
        issuer = Escaped(issuer.as_str()),
        metadata = Escaped(&metadata)
    );
    render("Authorization server", &body, nonce)
}

fn render(title: &str, body: &str, nonce: &str) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Portcullis, for development</title>
<style nonce="{nonce}">
{STYLE}</style>
</head>
<body>
<div class="top"><span class="mark">{LOGO}Portcullis</span><span class="notice">For development</span></div>
<main>
{body}
</main>
<footer>A server for development and tests. Anyone can sign in, under any name.</footer>
</body>
</html>
"#
    )
}

/// The source of the application's name.
struct NameSource<'a>(&'a AuthorizationRequest);

impl fmt::Display for NameSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(request) = self;
        if request.client.is_document {
            write!(f, "The document at <code>{}</code> has this name.", Escaped(&request.client_id))
        } else {
            f.write_str("The application chose this name. It is not verified.")
        }
    }
}

struct ScopeItems<'a>(&'a AuthorizationRequest);

impl fmt::Display for ScopeItems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.scopes.iter().try_for_each(|scope| write!(f, "<li>{}</li>", Escaped(scope)))
    }
}

/// Text escaped for HTML content and quoted attribute values.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(Escaped(r#"<a b="c" d='e'>&"#).to_string(), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
    }

    #[test]
    fn markup_in_a_reason_is_escaped() {
        assert!(!error_html("<script>", "nonce").contains("<script>"));
    }
}
