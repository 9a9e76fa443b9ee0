//! Checks that web pages can use the resource (Fetch standard, CORS protocol).

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    },
};
use portcullis_discovery::{FetchRequest, FetchResponse, UrlPolicy};
use url::Url;

use crate::{Finding, Rule};

const PREFLIGHT: Rule = Rule {
    id: "cors.preflight",
    source: "Fetch standard, CORS-preflight fetch",
};
const ORIGIN_ALLOWED: Rule = Rule {
    id: "cors.allow_origin",
    source: "Fetch standard, CORS check",
};
const HEADERS: Rule = Rule {
    id: "cors.allow_headers",
    source: "Fetch standard, CORS-preflight fetch",
};
const METHODS: Rule = Rule {
    id: "cors.allow_methods",
    source: "Fetch standard, CORS-preflight fetch",
};
const EXPOSED: Rule = Rule {
    id: "cors.expose_challenge",
    source: "Fetch standard, HTTP extensions",
};

/// The origin of the simulated web page.
const PAGE: HeaderValue = HeaderValue::from_static("http://localhost:6274");

/// Adds the origin of a web page to a request, so that the response has the CORS headers.
pub(crate) fn from_page(request: FetchRequest) -> FetchRequest {
    request.header(ORIGIN, PAGE)
}

/// The preflight request that a browser sends before a request with a token.
pub(crate) fn preflight(resource: &Url, policy: UrlPolicy) -> FetchRequest {
    from_page(FetchRequest::new(
        http::Method::OPTIONS,
        resource.clone(),
        policy,
    ))
    .header(
        ACCESS_CONTROL_REQUEST_METHOD,
        HeaderValue::from_static("POST"),
    )
    .header(
        ACCESS_CONTROL_REQUEST_HEADERS,
        HeaderValue::from_static("authorization,content-type"),
    )
}

/// Checks the response to the preflight. A server may exclude web pages, so no finding is more than
/// a warning.
pub(crate) fn check_preflight(response: &FetchResponse) -> Vec<Finding> {
    if !response.status.is_success() {
        let fix = if response.status == StatusCode::UNAUTHORIZED {
            "answer OPTIONS without a token: browsers never send one with it"
        } else {
            "answer OPTIONS with 204 and the Access-Control headers, if web pages may be clients"
        };
        let text = format!(
            "OPTIONS is answered with {}: web pages cannot be clients",
            response.status
        );
        return vec![Finding::warning(PREFLIGHT, text, fix)];
    }
    let headers = &response.headers;
    let mut findings = vec![check_origin(headers)];
    // A wildcard does not include Authorization.
    findings.push(
        if lists(headers, &ACCESS_CONTROL_ALLOW_HEADERS, "authorization") {
            Finding::met(HEADERS, "pages may send Authorization")
        } else {
            Finding::warning(
                HEADERS,
                "Access-Control-Allow-Headers does not name Authorization",
                "add it: the wildcard does not include it",
            )
        },
    );
    let post = lists(headers, &ACCESS_CONTROL_ALLOW_METHODS, "post")
        || lists(headers, &ACCESS_CONTROL_ALLOW_METHODS, "*");
    findings.push(if post {
        Finding::met(METHODS, "pages may send POST")
    } else {
        Finding::note(
            METHODS,
            "Access-Control-Allow-Methods does not name POST, which browsers allow anyway",
        )
    });
    findings
}

/// Checks whether a page can read the challenge.
pub(crate) fn check_challenge(headers: &HeaderMap) -> [Finding; 2] {
    let exposed = |name| lists(headers, &ACCESS_CONTROL_EXPOSE_HEADERS, name);
    let challenge = if exposed("www-authenticate") || exposed("*") {
        Finding::met(EXPOSED, "pages can read the WWW-Authenticate header")
    } else {
        Finding::warning(
            EXPOSED,
            "pages cannot read the WWW-Authenticate header",
            "add `Access-Control-Expose-Headers: WWW-Authenticate` to the 401",
        )
    };
    [check_origin(headers), challenge]
}

/// Checks whether pages can read a response.
pub(crate) fn check_origin(headers: &HeaderMap) -> Finding {
    match headers.get(ACCESS_CONTROL_ALLOW_ORIGIN) {
        Some(allowed) if allowed == "*" || allowed == PAGE => Finding::met(
            ORIGIN_ALLOWED,
            "pages of other origins can read the response",
        ),
        _ => Finding::warning(
            ORIGIN_ALLOWED,
            "no Access-Control-Allow-Origin for a page of another origin",
            "add `Access-Control-Allow-Origin: *`, if web pages may be clients",
        ),
    }
}

/// Whether a header, as a list of names, has an entry. Case is ignored.
fn lists(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|entry| entry.trim().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Verdict::{Met, Note, Warning};

    fn response(status: u16, headers: &[(HeaderName, &'static str)]) -> FetchResponse {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect();
        FetchResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::new(),
            sent: Default::default(),
        }
    }

    #[test]
    fn a_preflight_that_lets_pages_in() {
        let good = response(
            204,
            &[
                (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
                (ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type, Authorization"),
                (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
            ],
        );
        assert!(
            check_preflight(&good)
                .iter()
                .all(|finding| finding.verdict == Met)
        );
    }

    #[test]
    fn a_preflight_that_does_not() {
        for status in [401, 404, 405] {
            assert_eq!(
                check_preflight(&response(status, &[]))[0].verdict,
                Warning,
                "{status}"
            );
        }
        let wildcard = response(
            200,
            &[
                (ACCESS_CONTROL_ALLOW_ORIGIN, "https://other.example"),
                (ACCESS_CONTROL_ALLOW_HEADERS, "*"),
            ],
        );
        let verdicts: Vec<_> = check_preflight(&wildcard)
            .iter()
            .map(|finding| finding.verdict)
            .collect();
        assert_eq!(verdicts, [Warning, Warning, Note]);
    }

    #[test]
    fn the_challenge_must_be_exposed() {
        let verdicts = |headers: &[_]| {
            check_challenge(&response(401, headers).headers).map(|finding| finding.verdict)
        };
        let origin = (ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        assert_eq!(verdicts(&[]), [Warning, Warning]);
        assert_eq!(verdicts(std::slice::from_ref(&origin)), [Met, Warning]);
        assert_eq!(
            verdicts(&[
                origin,
                (ACCESS_CONTROL_EXPOSE_HEADERS, "x, WWW-Authenticate")
            ]),
            [Met, Met]
        );
    }
}
