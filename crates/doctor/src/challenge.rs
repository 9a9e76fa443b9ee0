//! The response to a request without a token (RFC 9110 section 15.5.2, RFC 6750 section 3, RFC 9728
//! section 5.1).

use http::{StatusCode, header::WWW_AUTHENTICATE};
use portcullis_discovery::FetchResponse;
use portcullis_metadata::{BearerChallenge, parse_challenges};
use serde_json::Value;
use url::Url;

use crate::{Finding, Rule, malformed, page, text};

const STATUS: Rule = Rule {
    id: "challenge.status",
    source: "RFC 9110 section 15.5.2, RFC 6750 section 3",
};
const TLS: Rule = Rule {
    id: "connection.tls",
    source: "RFC 6750 section 5.3",
};
const HEADER: Rule = Rule {
    id: "challenge.header",
    source: "RFC 9110 section 11.6.1",
};
const BEARER: Rule = Rule {
    id: "challenge.bearer",
    source: "RFC 6750 section 3",
};
const METADATA: Rule = Rule {
    id: "challenge.resource_metadata",
    source: "RFC 9728 section 5.1",
};
const NO_ERROR: Rule = Rule {
    id: "challenge.no_error",
    source: "RFC 6750 section 3.1",
};
const SCOPE: Rule = Rule {
    id: "challenge.scope",
    source: "MCP 2025-11-25 authorization, scope selection strategy",
};

/// Checks the response of the resource, and returns its challenge, if any.
pub(crate) fn check(
    asked: &Url,
    response: &FetchResponse,
    findings: &mut Vec<Finding>,
) -> Option<BearerChallenge> {
    findings.push(check_status(asked, response));
    let values: Vec<_> = response
        .headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .map(|value| value.as_bytes())
        .collect();
    if values.is_empty() {
        if response.status == StatusCode::UNAUTHORIZED {
            findings.push(Finding::problem(
                HEADER,
                "the 401 has no WWW-Authenticate header",
                "send `WWW-Authenticate: Bearer resource_metadata=\"...\"` with every 401",
            ));
        }
        return None;
    }
    let challenges = match parse_challenges(values) {
        Ok(challenges) => challenges,
        Err(error) => {
            findings.push(Finding::problem(
                HEADER,
                format!("the WWW-Authenticate header cannot be read: {error}"),
                "write it as `Bearer name=\"value\", name=\"value\"`",
            ));
            return None;
        }
    };
    let Some(challenge) = BearerChallenge::from_challenges(&challenges) else {
        let schemes = text::list(challenges.iter().map(|challenge| challenge.scheme()));
        findings.push(Finding::problem(
            BEARER,
            format!("no Bearer challenge, but challenges of the schemes {schemes}"),
            "add a Bearer challenge",
        ));
        return None;
    };
    findings.push(Finding::met(BEARER, "there is a Bearer challenge"));
    findings.push(check_resource_metadata(&challenge));
    let named = challenge.resource_metadata.as_deref();
    findings.extend(named.and_then(|named| malformed::check("resource_metadata", named)));
    findings.extend(check_error(&challenge));
    findings.push(check_scope(&challenge));
    Some(challenge)
}

/// Checks that the response is a 401.
fn check_status(asked: &Url, response: &FetchResponse) -> Finding {
    let status = response.status;
    if status == StatusCode::UNAUTHORIZED {
        return Finding::met(STATUS, "a request without a token is answered with 401");
    }
    if page::asks_for_tls(response) {
        return Finding::problem(
            TLS,
            "the server speaks TLS on this port, and the URL is http",
            "use https in the URL",
        );
    }
    let mut described = page::describe_response(response);
    if rejects_host(response) {
        described = format!("{described} ({HOST_REJECTED})");
    }
    let fix = fix_of_status(asked, response);
    Finding::problem(
        STATUS,
        format!("a request without a token is answered with {described}, not with 401"),
        fix,
    )
}

/// How Portcullis describes a request whose `Host` or `Origin` it does not serve.
const HOST_REJECTED: &str = "The host or origin is not allowed";

/// Whether the server rejects the host of the URL, or that to which a proxy has changed it.
fn rejects_host(response: &FetchResponse) -> bool {
    response.status == StatusCode::FORBIDDEN
        && serde_json::from_slice::<Value>(&response.body).is_ok_and(|body| {
            body.get("error_description")
                .is_some_and(|it| it == HOST_REJECTED)
        })
}

/// What to change if the response is not a 401, by its status and its content.
fn fix_of_status(asked: &Url, response: &FetchResponse) -> &'static str {
    let status = response.status;
    let page = page::WebPage::of(response);
    let redirects_to_http = asked.scheme() == "https"
        && page::redirect_target(response).is_some_and(|target| target.starts_with("http:"));
    if page.as_ref().is_some_and(|page| page.firewall.is_some()) {
        return page::FIREWALL_FIX;
    }
    match status {
        _ if status.is_success() && page.is_some() => {
            "give clients the URL of the MCP endpoint: this URL is a web site"
        }
        _ if status.is_success() => "require a token: anyone who knows this URL can use it",
        _ if status.is_redirection() && redirects_to_http => {
            "configure the server for https behind a proxy (X-Forwarded-Proto), or correct its redirect"
        }
        _ if status.is_redirection() => {
            "answer at this URL, or give clients the URL that it redirects to"
        }
        _ if rejects_host(response) || status == StatusCode::MISDIRECTED_REQUEST => {
            "use the URL that the server publishes, with its host and port (base_url and endpoint of Portcullis); if this is it, let \
             the proxy pass Host (nginx: proxy_set_header Host $http_host)"
        }
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            "give clients the whole URL of the MCP endpoint, with its path; if this is it, let the proxy pass POST requests to \
             this path, in its virtual host for this name (nginx: server_name)"
        }
        StatusCode::TOO_MANY_REQUESTS => {
            "raise the rate limit of the server or of the proxy or firewall in front of it"
        }
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            "start the MCP server, or correct the address to which the proxy in front of it sends requests; or start the gateway in \
             front of it"
        }
        _ if status.is_server_error() => "see the log of the server for the error",
        _ => "answer with 401 and a Bearer challenge before anything else is checked",
    }
}

/// Checks the URL of the metadata in the challenge.
fn check_resource_metadata(challenge: &BearerChallenge) -> Finding {
    const FIX: &str =
        "add resource_metadata=\"<absolute URL of the metadata document>\" to the challenge";
    match challenge.resource_metadata.as_deref() {
        None => Finding::warning(
            METADATA,
            "the challenge has no URL of the resource's metadata (resource_metadata)",
            FIX,
        ),
        Some(named) if Url::parse(named).is_err() => Finding::problem(
            METADATA,
            format!(
                "resource_metadata is not an absolute URL: {}",
                text::malformed_url(named)
            ),
            FIX,
        ),
        Some(_) => Finding::met(
            METADATA,
            "the challenge has the URL of the resource's metadata",
        ),
    }
}

fn check_error(challenge: &BearerChallenge) -> Option<Finding> {
    let error = challenge.error.as_deref()?;
    Some(Finding::warning(
        NO_ERROR,
        format!(
            "the challenge has error=\"{}\" although no token was sent",
            text::quoted(error)
        ),
        "omit `error` if the request has no token: clients may discard their token",
    ))
}

/// Reports the scopes of the challenge.
fn check_scope(challenge: &BearerChallenge) -> Finding {
    match &challenge.scope {
        Some(scopes) => Finding::met(
            SCOPE,
            format!("the challenge requires: {}", text::list(scopes.iter())),
        ),
        None => Finding::note(
            SCOPE,
            "the challenge has no scope: clients request all of scopes_supported",
        ),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::Verdict::{self, Met, Note, Problem, Warning};

    fn verdicts(status: u16, header: Option<&'static str>) -> Vec<(&'static str, Verdict)> {
        let headers = header.map(|value| (WWW_AUTHENTICATE, HeaderValue::from_static(value)));
        let response = FetchResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::from_iter(headers),
            body: Bytes::new(),
            sent: Default::default(),
        };
        let mut findings = Vec::new();
        check(
            &Url::parse("https://mcp.example.com/mcp").unwrap(),
            &response,
            &mut findings,
        );
        findings
            .into_iter()
            .map(|finding| (finding.rule.id, finding.verdict))
            .collect()
    }

    #[test]
    fn a_good_challenge() {
        let good =
            r#"Bearer resource_metadata="https://a.example/.well-known/x", scope="mcp:tools""#;
        assert_eq!(
            verdicts(401, Some(good)),
            [
                ("challenge.status", Met),
                ("challenge.bearer", Met),
                ("challenge.resource_metadata", Met),
                ("challenge.scope", Met),
            ]
        );
    }

    /// J9: a host that the server or its proxy does not pass on is the cause, and not the missing
    /// challenge.
    #[test]
    fn a_rejected_host_has_its_own_fix() {
        let body = format!(r#"{{"error":"forbidden","error_description":"{HOST_REJECTED}"}}"#);
        let response = |status, body: String| FetchResponse {
            status,
            headers: HeaderMap::new(),
            body: Bytes::from(body),
            sent: Default::default(),
        };
        for (response, is_rejected) in [
            (response(StatusCode::FORBIDDEN, body), true),
            (
                response(StatusCode::FORBIDDEN, r#"{"error":"forbidden"}"#.to_owned()),
                false,
            ),
            (response(StatusCode::FORBIDDEN, "no".to_owned()), false),
        ] {
            let asked = Url::parse("https://mcp.example.com/mcp").unwrap();
            let finding = check_status(&asked, &response);
            let fix = finding.fix.unwrap();
            assert_eq!(fix.contains("proxy_set_header Host"), is_rejected, "{fix}");
            assert_eq!(
                finding.text.contains(HOST_REJECTED),
                is_rejected,
                "{}",
                finding.text
            );
        }
    }

    /// J9: a path can be missing in the server, in the proxy, or in the virtual host that answers.
    #[test]
    fn an_unknown_path_can_be_of_another_host() {
        let asked = Url::parse("https://mcp.example.com/mcp").unwrap();
        let response = FetchResponse {
            status: StatusCode::NOT_FOUND,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"<html><title>404 Not Found</title></html>"),
            sent: Default::default(),
        };
        let fix = check_status(&asked, &response).fix.unwrap();
        for words in ["its path", "POST", "server_name"] {
            assert!(fix.contains(words), "{fix}");
        }
    }

    #[test]
    fn each_fault_by_itself() {
        let of = |status, header, rule| {
            verdicts(status, header)
                .into_iter()
                .find(|(id, _)| *id == rule)
                .map(|(_, verdict)| verdict)
        };
        for status in [200, 302, 400, 403, 404, 500] {
            assert_eq!(
                of(status, None, "challenge.status"),
                Some(Problem),
                "{status}"
            );
            assert_eq!(
                of(status, None, "challenge.header"),
                None,
                "one cause for {status}"
            );
        }
        assert_eq!(of(401, None, "challenge.header"), Some(Problem));
        assert_eq!(
            of(401, Some("Bearer realm=\"x"), "challenge.header"),
            Some(Problem)
        );
        assert_eq!(
            of(401, Some("Basic realm=\"x\""), "challenge.bearer"),
            Some(Problem)
        );
        assert_eq!(
            of(401, Some("Bearer"), "challenge.resource_metadata"),
            Some(Warning)
        );
        assert_eq!(
            of(
                401,
                Some("Bearer resource_metadata=\"/x\""),
                "challenge.resource_metadata"
            ),
            Some(Problem)
        );
        assert_eq!(
            of(
                401,
                Some("Bearer error=\"invalid_token\""),
                "challenge.no_error"
            ),
            Some(Warning)
        );
        assert_eq!(of(401, Some("Bearer"), "challenge.scope"), Some(Note));
    }
}
