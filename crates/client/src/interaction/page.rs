//! The responses for the browser: the HTML pages after the redirect, and the redirect to the
//! authorization server.

use portcullis_metadata::HtmlText;
use url::Url;

use crate::RedirectError;

/// The design of the pages of the development authorization server. That crate cannot be used here.
const STYLE: &str = include_str!("page.css");

/// The logo: a gate with bars, in the color of the text.
const LOGO: &str = r#"<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true"><path d="M4 21V10a8 8 0 0 1 16 0v11"/><path d="M9 4.2V19m6-14.8V19M4.5 10h15M4.5 15h15"/></svg>"#;

/// The hint after a sign-in.
const CLOSE: &str = "You can close this window.";

/// A page for the browser, as a whole HTTP/1.1 response.
pub(super) fn page(status: &str, heading: &str, text: &str) -> String {
    page_with_hint(status, heading, text, "")
}

/// The page for a validated response. An error of the server is shown only if its `iss` was valid.
///
/// After a code, the page says that access was granted, and not that the sign-in is complete: the
/// code has not been exchanged yet.
pub(super) fn result_page(validated: &Result<(), RedirectError>) -> String {
    match validated {
        Ok(()) => page_with_hint(
            "200 OK",
            "Access granted",
            "The program that asked for access continues automatically.",
            CLOSE,
        ),
        Err(RedirectError::Denied(denial)) => page_with_hint(
            "200 OK",
            "No access",
            &format!("The authorization server said: {denial}."),
            CLOSE,
        ),
        Err(error) => page_with_hint(
            "400 Bad Request",
            "No access",
            &format!("This answer was not accepted: {error}."),
            "You can close this window and try again.",
        ),
    }
}

/// The response that sends the browser to a URL.
pub(super) fn redirect_to(url: &Url) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
    )
}

/// As [`page`]. `hint` says what to do with the page.
fn page_with_hint(status: &str, heading: &str, text: &str, hint: &str) -> String {
    let heading = HtmlText(heading);
    let text = HtmlText(text);
    let hint = HtmlText(hint);
    let body = format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{heading} · Portcullis</title>
<style>
{STYLE}</style>
</head>
<body>
<div class="top"><span class="mark">{LOGO}Portcullis</span></div>
<main>
<h1>{heading}</h1>
<p>{text}</p>
<p class="soft">{hint}</p>
</main>
</body>
</html>
"#
    );
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; \
         frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::authorization::OAuthError;

    use super::*;

    /// The text of the redirect is escaped.
    #[test]
    fn everything_is_escaped() {
        let denial = OAuthError::new("<script>alert(1)</script>", "\"'&\r\nSet-Cookie: a=b");
        let shown = result_page(&Err(RedirectError::Denied(denial)));
        let (head, body) = shown.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("Set-Cookie"));
        assert!(!body.contains("<script>"), "{body}");
        assert!(body.contains("&lt;script&gt;"), "{body}");
        assert!(
            body.contains(r"&quot;&#39;&amp;\u{d}\u{a}Set-Cookie"),
            "{body}"
        );
    }
}
