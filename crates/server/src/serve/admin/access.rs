//! Which requests the listener for administrators accepts.

use http::{
    HeaderMap,
    header::{AUTHORIZATION, ORIGIN},
    request::Parts,
};
use portcullis_guard::OriginPolicy;
use portcullis_metadata::Secret;

use super::response::AdminError;
use crate::plan::AdminPlan;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Administrator,
    /// Only to read the metrics.
    MetricsReader,
}

/// The tokens and the permitted hosts.
pub(super) struct AccessPolicy {
    token: Secret,
    metrics_token: Option<Secret>,
    hosts: OriginPolicy,
}

impl AccessPolicy {
    pub(super) fn new(plan: &AdminPlan) -> Self {
        Self { token: plan.token.clone(), metrics_token: plan.metrics_token.clone(), hosts: plan.hosts.clone() }
    }

    /// Checks that no web page has sent the request, then the host, then the token, and returns what the token allows. Tokens are
    /// compared in constant time.
    ///
    /// # Errors
    /// Fails if the request is not one of an administrator.
    pub(super) fn check(&self, head: &Parts) -> Result<Role, AdminError> {
        if head.headers.contains_key(ORIGIN) {
            return Err(AdminError::forbidden("origin.not_allowed", "requests of web pages are not accepted"));
        }
        self.hosts.check(head.version, &head.uri, &head.headers).map_err(|rejection| {
            AdminError::new(
                rejection.status(),
                rejection.code(),
                format!("{rejection}; add its name to admin.allowed_hosts"),
            )
        })?;
        let token = bearer_token(&head.headers)?;
        if token == self.token {
            return Ok(Role::Administrator);
        }
        if self.metrics_token.as_ref() == Some(&token) {
            return Ok(Role::MetricsReader);
        }
        Err(AdminError::unauthorized("admin.token_invalid", "the token is not that of this listener"))
    }
}

fn bearer_token(headers: &HeaderMap) -> Result<Secret, AdminError> {
    let missing = || {
        AdminError::unauthorized(
            "admin.token_missing",
            "the request has no `Authorization: Bearer` with the admin token",
        )
    };
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
    if values.next().is_some() {
        return Err(AdminError::unauthorized("admin.token_invalid", "the request has several `Authorization` headers"));
    }
    let (scheme, token) = value.split_once(' ').ok_or_else(missing)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(Secret::new(token.trim_matches(' '))) } else { Err(missing()) }
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};
    use url::Url;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    const METRICS_TOKEN: &str = "metrics-0123456789abcdef0123456789";

    fn check(headers: &[(&str, &str)]) -> Result<Role, (StatusCode, &'static str)> {
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
        policy.check(&head).map_err(|error| (error.status, error.code))
    }

    /// E12: a request needs the whole token, once, in the header.
    #[test]
    fn the_token_is_required() {
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(check(&[("host", "localhost:9900"), ("authorization", &bearer)]), Ok(Role::Administrator));
        assert_eq!(
            check(&[("host", "127.0.0.1"), ("authorization", &format!("bearer  {TOKEN}"))]),
            Ok(Role::Administrator)
        );
        assert_eq!(check(&[("host", "admin.example"), ("authorization", &bearer)]), Ok(Role::Administrator));

        let reader = format!("Bearer {METRICS_TOKEN}");
        assert_eq!(check(&[("host", "localhost"), ("authorization", &reader)]), Ok(Role::MetricsReader));
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
        for value in
            ["Bearer x", "Bearer  ", &bearer[..bearer.len() - 1], &format!("{bearer}0"), &bearer.to_uppercase()]
        {
            assert_eq!(refused(&[("authorization", value)]), invalid, "{value}");
        }
        assert_eq!(refused(&[("authorization", &bearer), ("authorization", &bearer)]), invalid);
    }

    /// F3: a web page reaches nothing, with or without a rebound name.
    #[test]
    fn web_pages_are_rejected() {
        let bearer = format!("Bearer {TOKEN}");
        let with = |headers: &[(&str, &str)]| {
            let mut all = vec![("authorization", bearer.as_str())];
            all.extend_from_slice(headers);
            check(&all).unwrap_err()
        };
        let forbidden = |code| (StatusCode::FORBIDDEN, code);
        assert_eq!(with(&[("host", "rebound.example")]), forbidden("host.not_allowed"));
        assert_eq!(with(&[("host", "localhost.rebound.example")]), forbidden("host.not_allowed"));
        assert_eq!(with(&[]).1, "host.missing");
        assert_eq!(with(&[("host", "localhost"), ("host", "localhost")]).1, "host.repeated");

        for origin in ["http://localhost:9900", "null", "https://evil.example", ""] {
            assert_eq!(with(&[("host", "localhost"), ("origin", origin)]), forbidden("origin.not_allowed"));
        }
    }
}
