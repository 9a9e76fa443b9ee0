//! Which requests the listener for administrators accepts.

use http::{
    HeaderMap, StatusCode,
    header::{AUTHORIZATION, ORIGIN},
    request::Parts,
};
use portcullis_guard::{OriginPolicy, OriginRejection};
use portcullis_metadata::Secret;

use super::{LIMITS, response::AdminError};
use portcullis_config::plan::AdminPlan;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Administrator,
    /// Only to read the metrics.
    MetricsReader,
}

/// The tokens and the permitted hosts.
pub(super) struct AccessPolicy {
    /// The administrator's token (`admin.token`).
    token: Secret,
    /// The token that only reads the metrics (`admin.metrics_token`).
    metrics_token: Option<Secret>,
    /// The host of the listener, and those of `admin.allowed_hosts`.
    hosts: OriginPolicy,
}

impl AccessPolicy {
    pub(super) fn new(plan: &AdminPlan) -> Self {
        Self {
            token: plan.token.clone(),
            metrics_token: plan.metrics_token.clone(),
            hosts: plan.hosts.clone(),
        }
    }

    /// Checks the number of header fields, that the request has no `Origin`, the host, and the
    /// token, in this order, and returns what the token allows. Tokens are compared in constant
    /// time. The caller must check that the role permits the action.
    ///
    /// The checks of `Origin` and host keep web pages out. A page can add a token only after a
    /// preflight request, which has an `Origin`, or if it has the origin of this listener. The
    /// listener serves no page, and a page under a rebound name has another host. Fails with 431
    /// for too many header fields, with 403 for a request with an `Origin`, with 400 or 403 for the
    /// host (see [`OriginRejection::status`]), and with 401 without exactly one `Authorization`
    /// header with the token of an administrator or of a metrics reader.
    pub(super) fn check(&self, head: &Parts) -> Result<Role, AdminError> {
        // HTTP/1.1 heads were counted when they were parsed, HTTP/2 ones only in bytes.
        if head.headers.len() > LIMITS.max_headers {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(AdminError::new(
                status,
                "headers.too_many",
                "the request has too many header fields",
            ));
        }
        if head.headers.contains_key(ORIGIN) {
            return Err(AdminError::forbidden(
                "origin.not_allowed",
                "requests of web pages are not accepted",
            ));
        }
        self.hosts
            .check(head.version, &head.uri, &head.headers)
            .map_err(|rejection| {
                let fix = match rejection {
                    OriginRejection::HostNotAllowed => "; add its name to admin.allowed_hosts",
                    _ => "",
                };
                AdminError::new(
                    rejection.status(),
                    rejection.code(),
                    format!("{rejection}{fix}"),
                )
            })?;
        let token = bearer_token(&head.headers)?;
        if token == self.token {
            return Ok(Role::Administrator);
        }
        if self.metrics_token.as_ref() == Some(&token) {
            return Ok(Role::MetricsReader);
        }
        Err(invalid(
            "the token is neither the admin token nor the metrics token of this listener",
        ))
    }
}

/// Returns the token of the only `Authorization` header. The scheme is `Bearer` in any letter case;
/// spaces around the token are ignored. Fails with `admin.token_missing` if there is no header with
/// this scheme and a space. Fails with `admin.token_invalid` if there are several headers, or the
/// value has characters that no token has.
fn bearer_token(headers: &HeaderMap) -> Result<Secret, AdminError> {
    let missing = || {
        let message = "the request has no `Authorization: Bearer` with the admin token, or for metrics with the metrics token";
        AdminError::unauthorized("admin.token_missing", message)
    };
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or_else(missing)?;
    if values.next().is_some() {
        return Err(invalid("the request has several `Authorization` headers"));
    }
    let value = value.to_str().map_err(|_| {
        invalid("the `Authorization` header has other characters than visible ASCII and spaces")
    })?;
    let (scheme, token) = value.split_once(' ').ok_or_else(missing)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(Secret::new(token.trim_matches(' ')))
    } else {
        Err(missing())
    }
}

fn invalid(message: &'static str) -> AdminError {
    AdminError::unauthorized("admin.token_invalid", message)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use url::Url;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    const METRICS_TOKEN: &str = "metrics-0123456789abcdef0123456789";

    fn check(headers: &[(&str, &str)]) -> Result<Role, (StatusCode, &'static str)> {
        check_all(headers).map_err(|error| (error.status, error.code))
    }

    fn check_all(headers: &[(&str, &str)]) -> Result<Role, AdminError> {
        let hosts = OriginPolicy::for_base_url(&Url::parse("http://localhost").unwrap()).unwrap();
        let metrics_token = Some(Secret::new(METRICS_TOKEN));
        let policy = AccessPolicy {
            token: Secret::new(TOKEN),
            metrics_token,
            hosts: hosts.allow_host("admin.example").unwrap(),
        };
        let mut request = Request::get("/v1/sessions");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        policy.check(&head)
    }

    /// E12: a request needs the whole token, once, in the header.
    #[test]
    fn the_token_is_required() {
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(
            check(&[("host", "localhost:9900"), ("authorization", &bearer)]),
            Ok(Role::Administrator)
        );
        assert_eq!(
            check(&[
                ("host", "127.0.0.1"),
                ("authorization", &format!("bearer  {TOKEN}"))
            ]),
            Ok(Role::Administrator)
        );
        assert_eq!(
            check(&[("host", "admin.example"), ("authorization", &bearer)]),
            Ok(Role::Administrator)
        );

        let reader = format!("Bearer {METRICS_TOKEN}");
        assert_eq!(
            check(&[("host", "localhost"), ("authorization", &reader)]),
            Ok(Role::MetricsReader)
        );
        let refused = |headers: &[(&str, &str)]| {
            let mut all = vec![("host", "localhost")];
            all.extend_from_slice(headers);
            check(&all).unwrap_err()
        };
        let missing = (StatusCode::UNAUTHORIZED, "admin.token_missing");
        for value in ["", "Bearer", TOKEN, "Basic eDp5"] {
            assert_eq!(refused(&[("authorization", value)]), missing, "{value}");
        }
        assert_eq!(refused(&[]), missing);

        let invalid = (StatusCode::UNAUTHORIZED, "admin.token_invalid");
        for value in [
            "Bearer x",
            "Bearer  ",
            "Bearer t\u{f6}ken",
            &bearer[..bearer.len() - 1],
            &format!("{bearer}0"),
            &bearer.to_uppercase(),
        ] {
            assert_eq!(refused(&[("authorization", value)]), invalid, "{value}");
        }
        assert_eq!(
            refused(&[("authorization", &bearer), ("authorization", &bearer)]),
            invalid
        );
    }

    /// F4: the number of header fields is limited on HTTP/2, too.
    #[test]
    fn too_many_header_fields_are_rejected() {
        let bearer = format!("Bearer {TOKEN}");
        let mut headers = vec![("x-filling", "v"); LIMITS.max_headers - 2];
        headers.extend([("host", "localhost"), ("authorization", &bearer)]);
        assert_eq!(check(&headers), Ok(Role::Administrator));
        headers.push(("x-filling", "v"));
        assert_eq!(
            check(&headers),
            Err((
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers.too_many"
            ))
        );
    }

    /// F3: a web page reaches nothing, with or without a rebound name.
    #[test]
    fn web_pages_are_rejected() {
        let bearer = format!("Bearer {TOKEN}");
        let refused = |headers: &[(&str, &str)]| {
            let mut all = vec![("authorization", bearer.as_str())];
            all.extend_from_slice(headers);
            check(&all).unwrap_err()
        };
        let forbidden = |code| (StatusCode::FORBIDDEN, code);
        assert_eq!(
            refused(&[("host", "rebound.example")]),
            forbidden("host.not_allowed")
        );
        assert_eq!(
            refused(&[("host", "localhost.rebound.example")]),
            forbidden("host.not_allowed")
        );
        assert_eq!(refused(&[]).1, "host.missing");
        assert_eq!(
            refused(&[("host", "localhost"), ("host", "localhost")]).1,
            "host.repeated"
        );

        for origin in ["http://localhost:9900", "null", "https://evil.example", ""] {
            assert_eq!(
                refused(&[("host", "localhost"), ("origin", origin)]),
                forbidden("origin.not_allowed")
            );
        }
    }

    /// E12, F3: only the rejection of a host that could be allowed names the setting.
    #[test]
    fn only_a_host_that_is_not_allowed_can_be_added() {
        for (headers, expected) in [
            (&[][..], "the request has no host"),
            (
                &[("host", "localhost"), ("host", "localhost")],
                "the request has several host headers",
            ),
            (&[("host", "a b")], "the host is malformed"),
            (
                &[("host", "other.example")],
                "the host is not allowed; add its name to admin.allowed_hosts",
            ),
            (
                &[("host", "localhost"), ("origin", "null")],
                "requests of web pages are not accepted",
            ),
        ] {
            assert_eq!(check_all(headers).unwrap_err().message, expected);
        }
    }
}
