use http::Method;
use portcullis_metadata::Scopes;
use portcullis_verifier::Principal;

use crate::{
    RouteRule, ScopeJudge,
    path_glob::{AmbiguousPath, PlainPath},
};

/// The scopes that requests need, by route.
pub(crate) struct Rules {
    required: Scopes,
    judged_by: ScopeJudge,
    routes: Vec<RouteRule>,
}

/// Why a principal may not do what it asks for.
#[derive(Debug)]
pub(crate) enum NotAuthorized {
    /// No rule can judge the path.
    AmbiguousPath,
    /// Scopes are missing; `needed` is all that the request needs.
    Scopes { needed: Scopes },
}

impl Rules {
    pub(crate) fn new(required: Scopes, judged_by: ScopeJudge, routes: Vec<RouteRule>) -> Self {
        Self { required, judged_by, routes }
    }

    /// Whether this principal's scopes are enough. Where they are, nothing is allocated (but for a path with
    /// percent-encoded characters).
    pub(crate) fn judge(&self, method: &Method, path: &str, principal: &Principal) -> Result<(), NotAuthorized> {
        let granted = principal.scopes();
        let enough = self.judged_by == ScopeJudge::Inner || granted.covers(&self.required);
        if self.routes.is_empty() {
            return if enough { Ok(()) } else { Err(NotAuthorized::Scopes { needed: self.required.clone() }) };
        }
        let path = PlainPath::parse(path).map_err(|AmbiguousPath| NotAuthorized::AmbiguousPath)?;
        let matching = || self.routes.iter().filter(|rule| rule.counts_for(method, &path));
        if enough && matching().all(|rule| granted.covers(&rule.scopes)) {
            return Ok(());
        }
        // All that it takes, so that the client has to ask for scopes only once.
        let needed = matching().fold(self.required.clone(), |needed, rule| needed.union(&rule.scopes));
        Err(NotAuthorized::Scopes { needed })
    }
}

impl RouteRule {
    fn counts_for(&self, method: &Method, path: &PlainPath<'_>) -> bool {
        // Methods are case-sensitive (RFC 9110 section 9.1), and there are servers that take `post` for `POST`.
        let is = |listed: &Method| listed.as_str().eq_ignore_ascii_case(method.as_str());
        let is_head = is(&Method::HEAD);
        let counts = |listed: &Method| is(listed) || (is_head && listed.as_str().eq_ignore_ascii_case("GET"));
        (self.methods.is_empty() || self.methods.iter().any(counts)) && self.path.matches(path)
    }
}
