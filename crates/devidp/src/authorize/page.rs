//! The HTML pages.

use std::fmt;

use portcullis_authorization_server::client::{Client, RedirectUri};
use portcullis_metadata::{HtmlText, Scopes};

use crate::{config::Config, metadata};

const STYLE: &str = include_str!("page.css");

/// The logo: a gate with bars, in the color of the text.
const LOGO: &str = r#"<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true"><path d="M4 21V10a8 8 0 0 1 16 0v11"/><path d="M9 4.2V19m6-14.8V19M4.5 10h15M4.5 15h15"/></svg>"#;

/// The page that asks the user to approve an authorization request or a device authorization.
pub(crate) struct ConsentPage<'a> {
    pub(crate) client: &'a Client,
    pub(crate) client_id: &'a str,
    pub(crate) scopes: &'a Scopes,
    pub(crate) audience: Option<&'a str>,
    pub(crate) destination: Destination<'a>,
    pub(crate) user: &'a str,
    pub(crate) ticket: &'a str,
    pub(crate) action: &'a str,
}

/// Where the answer goes.
pub(crate) enum Destination<'a> {
    /// To the client's redirect URI.
    Redirect(&'a RedirectUri),
    /// To the device that shows this user code.
    Device(&'a str),
}

impl ConsentPage<'_> {
    /// Renders the page. `nonce` is that of the style sheet.
    pub(crate) fn html(&self, nonce: &str) -> String {
        let client = HtmlText(self.client.name.as_deref().unwrap_or(self.client_id));
        let body = format!(
            r#"<h1>Allow <bdi>{client}</bdi> to act for you?</h1>
<p class="soft">{name_source}</p>
<form method="post" action="{action}">
<dl>
<div><dt>It asks for</dt><dd><ul>{scopes}</ul></dd></div>
<div><dt>At</dt><dd>{resource}</dd></div>
{destination}
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
            name_source = NameSource(self),
            action = HtmlText(self.action),
            scopes = ScopeItems(self.scopes),
            resource = HtmlText(
                self.audience
                    .unwrap_or("Any resource: the request names none")
            ),
            destination = self.destination,
            user = HtmlText(self.user),
            ticket = HtmlText(self.ticket),
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
        reason = HtmlText(reason)
    );
    render("Request rejected", &body, nonce)
}

/// Renders the page on which the user enters a user code. It is submitted to `action`.
pub(crate) fn device_code_html(action: &str, message: Option<&str>, nonce: &str) -> String {
    let message = message.map(|message| {
        format!(
            "<p class=\"problem\" role=\"alert\">{}</p>",
            HtmlText(message)
        )
    });
    let body = format!(
        r#"<h1>Connect a device</h1>
<p class="soft">Enter the code that your device or terminal shows.</p>
{message}
<form method="get" action="{action}">
<label for="user_code">Code</label>
<input id="user_code" name="user_code" class="code" placeholder="XXXX-XXXX" required autofocus maxlength="20" autocomplete="off" autocapitalize="characters" spellcheck="false">
<div class="buttons">
<button class="allow">Continue</button>
</div>
</form>"#,
        message = message.unwrap_or_default(),
        action = HtmlText(action),
    );
    render("Connect a device", &body, nonce)
}

/// Renders the page after the user answered a device authorization.
pub(crate) fn device_answered_html(is_approved: bool, nonce: &str) -> String {
    let (title, text) = if is_approved {
        ("Your device is connected", "It continues in a few seconds.")
    } else {
        ("The request was denied", "The device gets no access.")
    };
    render(
        title,
        &format!("<h1>{title}</h1>\n<p>{text}</p>\n<p class=\"soft\">You can close this page.</p>"),
        nonce,
    )
}

/// Renders the page at the issuer's address.
pub(crate) fn home_html(config: &Config, nonce: &str) -> String {
    let body = format!(
        r#"<h1>Authorization server</h1>
<p>Issuer <code>{issuer}</code></p>
<p>Clients read its <a href="{metadata}">metadata</a>.</p>"#,
        issuer = HtmlText(config.issuer.as_str()),
        metadata = HtmlText(&metadata::main_path(config)),
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

impl fmt::Display for Destination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redirect(redirect) => {
                let location = if redirect.is_loopback() {
                    "on this computer"
                } else {
                    "on another machine"
                };
                let authority = HtmlText(redirect.authority());
                write!(
                    f,
                    r#"<div><dt>The answer goes to</dt><dd>{authority} <span class="soft place">{location}</span></dd></div>"#
                )
            }
            Self::Device(user_code) => write!(
                f,
                r#"<div><dt>Code</dt><dd><span class="code">{}</span> <span class="soft place">Allow only if your device shows this code.</span></dd></div>"#,
                HtmlText(user_code)
            ),
        }
    }
}

/// The source of the application's name.
struct NameSource<'a>(&'a ConsentPage<'a>);

impl fmt::Display for NameSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(page) = self;
        if page.client.is_document {
            write!(
                f,
                "The document at <code>{}</code> has this name.",
                HtmlText(page.client_id)
            )
        } else if self.0.client.name.is_none() {
            f.write_str("This is the identifier of the application, which has no name.")
        } else {
            f.write_str("The application chose this name. It is not verified.")
        }
    }
}

struct ScopeItems<'a>(&'a Scopes);

impl fmt::Display for ScopeItems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|scope| write!(f, "<li>{}</li>", HtmlText(scope)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_reason_is_escaped() {
        assert!(!error_html("<script>", "nonce").contains("<script>"));
    }
}
