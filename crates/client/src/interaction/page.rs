//! The HTML pages that the browser shows after the redirect.

use crate::RedirectError;

/// A page for the browser, as a whole HTTP/1.1 response.
pub(super) fn page(status: &str, heading: &str, text: &str) -> String {
    let (heading, text) = (escaped(heading), escaped(text));
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{heading}</title>\n\
         <style>:root{{color-scheme:light dark}}body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;\
         margin:15vh auto;padding:0 1.5rem;overflow-wrap:anywhere;color:#1c2430;background:#fff}}\
         h1{{font-size:1.5rem;line-height:1.25}}\
         @media(prefers-color-scheme:dark){{body{{color:#e6e9ee;background:#15191f}}}}</style>\n</head>\n\
         <body>\n<main>\n<h1>{heading}</h1>\n<p>{text}</p>\n</main>\n</body>\n</html>\n"
    );
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; \
         frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The page for a validated response. An error of the server is shown only if its `iss` was valid.
///
/// The page does not claim success, because the code has not been exchanged yet.
pub(super) fn result_page(judged: &Result<(), RedirectError>) -> String {
    match judged {
        Ok(()) => page(
            "200 OK",
            "Access granted",
            "You can close this window. The program that asked for access continues automatically.",
        ),
        Err(RedirectError::Denied(denial)) => {
            page("200 OK", "No access", &format!("The authorization server said: {denial}. You can close this window."))
        }
        Err(error) => page(
            "400 Bad Request",
            "No access",
            &format!("This answer was not accepted: {error}. You can close this window and try again."),
        ),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::OAuthError;

    use super::*;

    /// The text of the redirect is escaped.
    #[test]
    fn everything_is_escaped() {
        let denial = OAuthError::new("<script>alert(1)</script>", "\"'&\r\nSet-Cookie: a=b");
        let shown = result_page(&Err(RedirectError::Denied(denial)));
        let (head, body) = shown.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("Set-Cookie"));
        assert!(!body.contains("<script>") && body.contains("&lt;script&gt;"), "{body}");
        assert!(body.contains(r"&quot;&#39;&amp;\u{d}\u{a}Set-Cookie"), "{body}");
    }
}
