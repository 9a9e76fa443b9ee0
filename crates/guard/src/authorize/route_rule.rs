//! [`RouteRule`]: scopes by method and path.

use http::Method;
use portcullis_metadata::Scopes;

use super::{path_glob::PathGlob, unambiguous_path::UnambiguousPath};

/// The scopes that requests to some paths need. All rules that match a request apply together.
///
/// The guard decodes the path as it arrives and matches it. If there are route rules, a path that
/// servers interpret in different ways is rejected with 400: a path with dot segments, empty
/// segments, `;`, backslashes, control characters, encoded slashes, double encoding or invalid
/// UTF-8. Headers that override the method are ignored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RouteRule {
    /// The methods that the rule applies to, in any letter case; an empty list means all methods.
    /// Rules for `GET` apply to `HEAD` too.
    pub methods: Vec<Method>,
    /// The paths that the rule applies to.
    pub path: PathGlob,
    /// The scopes that those requests need.
    pub scopes: Scopes,
}

impl RouteRule {
    /// Creates a rule for all methods on these paths.
    pub fn new(path: PathGlob, scopes: Scopes) -> Self {
        Self {
            methods: Vec::new(),
            path,
            scopes,
        }
    }

    /// Restricts the rule to these methods.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().collect();
        self
    }

    /// Returns whether the rule applies to a request.
    pub(super) fn matches(&self, method: &Method, path: &UnambiguousPath<'_>) -> bool {
        // Methods are case-sensitive (RFC 9110 section 9.1), but some servers accept `post` for
        // `POST`.
        let is = |listed: &Method| listed.as_str().eq_ignore_ascii_case(method.as_str());
        let is_head = is(&Method::HEAD);
        let applies = |listed: &Method| {
            is(listed) || (is_head && listed.as_str().eq_ignore_ascii_case("GET"))
        };
        (self.methods.is_empty() || self.methods.iter().any(applies)) && self.path.matches(path)
    }
}
