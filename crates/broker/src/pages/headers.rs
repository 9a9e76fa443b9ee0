//! [`Page`]: a rendered page, and its headers.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};

const CROSS_ORIGIN_OPENER_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-opener-policy");

/// A rendered page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) html: String,
    /// The source expression of its style sheet.
    pub(super) style_source: Arc<str>,
    pub(super) forms: Forms,
}

/// The forms of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Forms {
    /// The page has none.
    None,
    /// They are sent to the broker. Its answer is a page and never a redirect: browsers apply the
    /// policy to every redirect after a form, also to those of other servers.
    ToSelf,
}

impl Page {
    /// Returns all headers of the page.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers: HeaderMap = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
            (REFERRER_POLICY, self.referrer_policy()),
        ]
        .into_iter()
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect();
        // The hash of the style is base64, so it can always be in a header.
        let policy = HeaderValue::try_from(self.security_policy())
            .unwrap_or(HeaderValue::from_static("default-src 'none'"));
        headers.insert(CONTENT_SECURITY_POLICY, policy);
        headers
    }

    /// Returns the response with the page.
    pub(crate) fn into_response(self, status: StatusCode) -> Response<Bytes> {
        let headers = self.headers();
        let mut response = Response::new(Bytes::from(self.html));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    /// With `no-referrer`, browsers send `Origin: null` with a form. Neither policy sends a
    /// referrer to another origin.
    fn referrer_policy(&self) -> &'static str {
        match self.forms {
            Forms::None => "no-referrer",
            Forms::ToSelf => "same-origin",
        }
    }

    fn security_policy(&self) -> String {
        let form_action = match self.forms {
            Forms::None => "'none'",
            Forms::ToSelf => "'self'",
        };
        format!(
            "default-src 'none'; style-src {}; img-src data:; form-action {form_action}; base-uri 'none'; frame-ancestors 'none'",
            self.style_source
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(forms: Forms) -> Page {
        Page {
            html: "<p>".to_owned(),
            style_source: "'sha256-abc='".into(),
            forms,
        }
    }

    fn header(page: &Page, name: &str) -> String {
        page.headers()[name].to_str().unwrap().to_owned()
    }

    #[test]
    fn a_page_with_a_form_sends_it_to_this_server_only() {
        let page = page(Forms::ToSelf);
        assert_eq!(
            header(&page, "content-security-policy"),
            "default-src 'none'; style-src 'sha256-abc='; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        );
        assert_eq!(header(&page, "referrer-policy"), "same-origin");
    }

    #[test]
    fn a_page_without_a_form_sends_no_form_and_no_referrer() {
        let page = page(Forms::None);
        assert_eq!(
            header(&page, "content-security-policy"),
            "default-src 'none'; style-src 'sha256-abc='; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        );
        assert_eq!(header(&page, "referrer-policy"), "no-referrer");
    }

    #[test]
    fn a_page_is_not_framed_cached_or_guessed_at() {
        let response = page(Forms::None).into_response(StatusCode::FORBIDDEN);
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        assert_eq!(response.body().as_ref(), b"<p>");
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(response.headers()[name], value, "{name}");
        }
        assert_eq!(response.headers().len(), 7);
    }
}
