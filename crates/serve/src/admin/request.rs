//! Requests of administrators: routes, queries and bodies.

use http::{Method, StatusCode, request::Parts};
use portcullis_metadata::syntax::has_media_type;
use portcullis_session::LogHash;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::response::AdminError;
use crate::administration::{
    DROP_TOKENS, DropRequest, END_GRANTS, END_SESSIONS, EndRequest, GRANTS, MAX_PAGE, METRICS,
    SESSIONS,
};

/// The number of sessions or grants on a page if the request does not say.
pub(super) const DEFAULT_PAGE: usize = 100;
/// The maximum size of a name in bytes.
pub(super) const MAX_NAME: usize = 4096;
/// The maximum size of a note in bytes.
pub(super) const MAX_NOTE: usize = 1024;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    ListSessions,
    EndSessions,
    ListGrants,
    EndGrants,
    DropTokens,
    ReadMetrics,
}

/// The sessions of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListRequest {
    pub(super) owner: OwnerFilter,
    pub(super) resource: Option<String>,
    pub(super) session: Option<LogHash>,
    pub(super) after: Option<LogHash>,
    pub(super) limit: usize,
}

/// Names that owners must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnerFilter {
    pub(super) issuer: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) client: Option<String>,
}

/// Which sessions end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EndTarget {
    Session(LogHash),
    Owners(EndOwners),
}

/// The owners whose sessions end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndOwners {
    /// `None` for every issuer.
    pub(super) issuer: Option<String>,
    pub(super) names: OwnerNames,
}

/// The names of owners: never none, because a filter without names matches all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnerNames {
    Subject(String),
    Client(String),
    Both { subject: String, client: String },
}

impl EndOwners {
    /// Returns the filter that matches these owners.
    pub(super) fn filter(&self) -> OwnerFilter {
        let (subject, client) = match &self.names {
            OwnerNames::Subject(subject) => (Some(subject), None),
            OwnerNames::Client(client) => (None, Some(client)),
            OwnerNames::Both { subject, client } => (Some(subject), Some(client)),
        };
        OwnerFilter {
            issuer: self.issuer.clone(),
            subject: subject.cloned(),
            client: client.cloned(),
        }
    }
}

impl Route {
    /// Returns the route of a request's path, method and media type. Fails with 404 if there is no
    /// such path, 405 if it has another method, and 415 if a body is not JSON.
    pub(super) fn of(head: &Parts) -> Result<Self, AdminError> {
        let (route, method) = match head.uri.path() {
            SESSIONS => (Self::ListSessions, Method::GET),
            END_SESSIONS => (Self::EndSessions, Method::POST),
            GRANTS => (Self::ListGrants, Method::GET),
            END_GRANTS => (Self::EndGrants, Method::POST),
            DROP_TOKENS => (Self::DropTokens, Method::POST),
            METRICS => (Self::ReadMetrics, Method::GET),
            _ => {
                return Err(AdminError::new(
                    StatusCode::NOT_FOUND,
                    "path.unknown",
                    "there is nothing at this path",
                ));
            }
        };
        if head.method != method {
            return Err(AdminError::method_not_allowed(method));
        }
        if method == Method::POST && !has_media_type(&head.headers, "application/json") {
            let message = "the content type of the body must be application/json";
            return Err(AdminError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "admin.content_type",
                message,
            ));
        }
        Ok(route)
    }

    /// Returns the name of the action in logs and audit records.
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::ListSessions => "sessions.list",
            Self::EndSessions => "sessions.end",
            Self::ListGrants => "grants.list",
            Self::EndGrants => "grants.end",
            Self::DropTokens => "tokens.drop",
            Self::ReadMetrics => "metrics.read",
        }
    }
}

impl ListRequest {
    /// Reads a query. Fails if a parameter is unknown, repeated or invalid.
    pub(super) fn parse(query: &str) -> Result<Self, AdminError> {
        let mut request = Self {
            limit: DEFAULT_PAGE,
            ..Self::default()
        };
        let mut seen = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if seen.contains(&name) {
                return Err(AdminError::invalid("a parameter is repeated"));
            }
            let text = || check_length(&name, &value, MAX_NAME).map(|()| Some(value.to_string()));
            match &*name {
                "issuer" => request.owner.issuer = text()?,
                "subject" => request.owner.subject = text()?,
                "client" => request.owner.client = text()?,
                "resource" => request.resource = text()?,
                "session" => request.session = Some(parse_hash("session", &value)?),
                "after" => request.after = Some(parse_hash("after", &value)?),
                "limit" => request.limit = parse_limit(&value)?,
                _ => {
                    return Err(AdminError::invalid(
                        "a parameter is unknown; there are issuer, subject, client, resource, session, after and limit",
                    ));
                }
            }
            seen.push(name);
        }
        Ok(request)
    }
}

/// Reads the body of [`Route::EndSessions`]. Also returns the note. Fails if it is not JSON of the
/// expected form, or does not name a session, a subject or a client.
pub(super) fn parse_end(body: &[u8]) -> Result<(EndTarget, Option<String>), AdminError> {
    let EndRequest {
        session,
        subject,
        client,
        issuer,
        note,
    } = from_json(body)?;
    for (name, text, max) in [
        ("subject", &subject, MAX_NAME),
        ("client", &client, MAX_NAME),
        ("issuer", &issuer, MAX_NAME),
        ("note", &note, MAX_NOTE),
    ] {
        text.iter()
            .try_for_each(|text| check_length(name, text, max))?;
    }
    let names = match (session, subject, client) {
        (Some(session), None, None) if issuer.is_none() => {
            return Ok((EndTarget::Session(parse_hash("session", &session)?), note));
        }
        (None, Some(subject), None) => OwnerNames::Subject(subject),
        (None, None, Some(client)) => OwnerNames::Client(client),
        (None, Some(subject), Some(client)) => OwnerNames::Both { subject, client },
        (None, None, None) => {
            return Err(AdminError::invalid("name a session, a subject or a client"));
        }
        (Some(_), ..) => {
            return Err(AdminError::invalid(
                "name either a session, or a subject, a client and an issuer",
            ));
        }
    };
    Ok((EndTarget::Owners(EndOwners { issuer, names }), note))
}

/// Reads the body of [`Route::DropTokens`]. Fails if it is not JSON of the expected form, or a text
/// is empty or too long.
pub(super) fn parse_drop(body: &[u8]) -> Result<DropRequest, AdminError> {
    let request: DropRequest = from_json(body)?;
    check_length("issuer", &request.issuer, MAX_NAME)?;
    request
        .note
        .iter()
        .try_for_each(|note| check_length("note", note, MAX_NOTE))?;
    Ok(request)
}

/// Reads the parameter `limit`.
pub(super) fn parse_limit(text: &str) -> Result<usize, AdminError> {
    let limit = text.parse().ok();
    let limit = limit.filter(|limit| (1..=MAX_PAGE).contains(limit));
    limit.ok_or_else(|| AdminError::invalid(format!("limit must be a number from 1 to {MAX_PAGE}")))
}

pub(super) fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, AdminError> {
    serde_json::from_slice(body)
        .map_err(|error| AdminError::invalid(format!("the body is not as expected: {error}")))
}

pub(super) fn check_length(name: &str, text: &str, max: usize) -> Result<(), AdminError> {
    match text.len() {
        0 => Err(AdminError::invalid(format!("{name} is empty"))),
        length if length > max => Err(AdminError::invalid(format!(
            "{name} has more than {max} bytes"
        ))),
        _ => Ok(()),
    }
}

fn parse_hash(name: &str, text: &str) -> Result<LogHash, AdminError> {
    let expected = "must be the hash of a session in the log: 16 lowercase hexadecimal digits";
    LogHash::parse(text).ok_or_else(|| AdminError::invalid(format!("{name} {expected}")))
}

#[cfg(test)]
mod tests {
    use http::{Request, header::CONTENT_TYPE};
    use proptest::prelude::*;

    use super::*;

    fn route(
        method: &str,
        path: &str,
        content_type: Option<&str>,
    ) -> Result<Route, (u16, &'static str)> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        Route::of(&head).map_err(|error| (error.status.as_u16(), error.code))
    }

    /// E12: each path has one method, and a body is JSON.
    #[test]
    fn routes_are_exact() {
        let json = Some("application/json; charset=utf-8");
        assert_eq!(
            route("GET", "/v1/sessions?limit=1", None),
            Ok(Route::ListSessions)
        );
        assert_eq!(route("GET", "/metrics", None), Ok(Route::ReadMetrics));
        assert_eq!(
            route("POST", "/v1/sessions/end", json),
            Ok(Route::EndSessions)
        );
        assert_eq!(
            route("GET", "/v1/grants?limit=1", None),
            Ok(Route::ListGrants)
        );
        assert_eq!(route("POST", "/v1/grants/end", json), Ok(Route::EndGrants));
        assert_eq!(
            route("POST", "/v1/tokens/drop", json),
            Ok(Route::DropTokens)
        );

        for path in [
            "/",
            "/v1/sessions/",
            "//v1/sessions",
            "/v1/%73essions",
            "/v1",
            "/mcp",
        ] {
            assert_eq!(
                route("GET", path, None),
                Err((404, "path.unknown")),
                "{path}"
            );
        }
        for method in ["POST", "HEAD", "OPTIONS", "DELETE"] {
            assert_eq!(
                route(method, "/v1/sessions", json),
                Err((405, "admin.method_not_allowed"))
            );
        }
        for content_type in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
        ] {
            assert_eq!(
                route("POST", "/v1/sessions/end", content_type),
                Err((415, "admin.content_type"))
            );
        }
    }

    #[test]
    fn queries_are_read() {
        let request = ListRequest::parse(
            "subject=alice%20a&client=c&issuer=https%3A%2F%2Fi&resource=r&after=00000000000000ff&limit=7",
        )
        .unwrap();
        assert_eq!(request.owner.subject.as_deref(), Some("alice a"));
        assert_eq!(request.owner.issuer.as_deref(), Some("https://i"));
        assert_eq!(request.owner.client.as_deref(), Some("c"));
        assert_eq!(request.limit, 7);
        assert_eq!(request.after, LogHash::parse("00000000000000ff"));
        assert_eq!(ListRequest::parse("").unwrap().limit, DEFAULT_PAGE);

        for query in [
            "limit=0",
            "limit=1001",
            "limit=x",
            "after=x",
            "session=",
            "user=alice",
            "subject=",
            "subject=a&subject=b",
        ] {
            assert_eq!(
                ListRequest::parse(query).unwrap_err().code,
                "admin.request_invalid",
                "{query}"
            );
        }
    }

    /// An error names the parameter.
    #[test]
    fn errors_name_the_parameter() {
        for (query, expected) in [
            ("subject=", "subject is empty"),
            ("after=x", "after must be the hash of a session"),
            ("session=", "session must be the hash of a session"),
            ("limit=0", "limit must be a number from 1 to"),
        ] {
            let error = ListRequest::parse(query).unwrap_err();
            assert!(
                format!("{error:?}").contains(expected),
                "{query}: {error:?}"
            );
        }
        let long = "x".repeat(MAX_NOTE + 1);
        let error =
            parse_end(format!("{{\"subject\":\"a\",\"note\":\"{long}\"}}").as_bytes()).unwrap_err();
        assert!(
            format!("{error:?}").contains("note has more than"),
            "{error:?}"
        );
    }

    /// E12: an end names what ends, and nothing else.
    #[test]
    fn ends_name_their_target() {
        let session = "00000000000000ff";
        let parsed =
            parse_end(format!("{{\"session\":\"{session}\",\"note\":\"n\"}}").as_bytes()).unwrap();
        assert_eq!(
            parsed,
            (
                EndTarget::Session(LogHash::parse(session).unwrap()),
                Some("n".to_owned())
            )
        );
        let (target, note) = parse_end(br#"{"subject":"alice","issuer":"https://i"}"#).unwrap();
        let names = OwnerNames::Subject("alice".into());
        assert_eq!(
            target,
            EndTarget::Owners(EndOwners {
                issuer: Some("https://i".into()),
                names
            })
        );
        assert_eq!(note, None);

        for body in [
            "",
            "{}",
            "[]",
            "{\"issuer\":\"https://i\"}",
            "{\"subject\":\"\"}",
            "{\"subject\":null}",
            "{\"subjects\":\"a\"}",
            "{\"session\":\"x\"}",
            "{\"session\":\"00000000000000ff\",\"subject\":\"a\"}",
            "{\"session\":\"00000000000000ff\",\"issuer\":\"a\"}",
            "{\"subject\":\"a\"} x",
            "{\"subject\":\"a\",\"subject\":\"b\"}",
        ] {
            assert_eq!(
                parse_end(body.as_bytes()).unwrap_err().code,
                "admin.request_invalid",
                "{body}"
            );
        }
        let long = format!("{{\"subject\":\"{}\"}}", "x".repeat(MAX_NAME + 1));
        assert!(parse_end(long.as_bytes()).is_err());
        assert!(parse_drop(br#"{"issuer":"https://i"}"#).is_ok());
        assert!(parse_drop(b"{}").is_err());
        assert!(parse_drop(br#"{"issuer":""}"#).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(body in prop::collection::vec(any::<u8>(), 0..200), query in "\\PC{0,60}") {
            let _ = (parse_end(&body), parse_drop(&body), ListRequest::parse(&query));
        }
    }
}
