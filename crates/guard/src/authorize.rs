use http::Method;
use portcullis_metadata::Scopes;
use portcullis_verifier::Principal;

use crate::{
    ClaimDenial, ClaimDenials, ClaimRule, RouteRule, ScopeEnforcer, ScopeImplications,
    path_glob::{AmbiguousPath, PlainPath},
};

/// What requests need: claims, and scopes by route.
pub(crate) struct Rules {
    pub(crate) required: Scopes,
    pub(crate) judged_by: ScopeEnforcer,
    pub(crate) implications: ScopeImplications,
    pub(crate) claims: Vec<ClaimRule>,
    pub(crate) routes: Vec<RouteRule>,
}

/// A principal may do what it asks for.
pub(crate) struct Authorized {
    /// Why a rule would have refused it that only reports.
    pub(crate) report_only_denial: Option<ClaimDenial>,
}

/// Why a principal may not do what it asks for.
#[derive(Debug)]
pub(crate) enum NotAuthorized {
    /// No rule can judge the path.
    AmbiguousPath,
    /// Its claims are not what they have to be.
    Claims(ClaimDenial),
    /// Scopes are missing; `needed` is all that the request needs.
    Scopes { needed: Scopes },
}

impl Rules {
    /// Whether this principal's claims and scopes are enough. Claims come first: nobody is sent for scopes that would not
    /// help. Where nothing is asked of claims, and the path has no percent-encoded characters, nothing is allocated.
    pub(crate) fn judge(
        &self,
        method: &Method,
        path: &str,
        principal: &Principal,
    ) -> Result<Authorized, NotAuthorized> {
        let mut claims = ClaimDenials::default();
        claims.evaluate(&self.claims, principal);
        match claims.enforced {
            Some(unmet) => Err(NotAuthorized::Claims(unmet)),
            None => self
                .judge_scopes(method, path, principal.scopes())
                .map(|()| Authorized { report_only_denial: claims.report_only }),
        }
    }

    fn judge_scopes(&self, method: &Method, path: &str, granted: &Scopes) -> Result<(), NotAuthorized> {
        let covers = |needed| self.implications.covers(granted, needed);
        let enough = self.judged_by == ScopeEnforcer::Inner || covers(&self.required);
        if self.routes.is_empty() {
            return if enough { Ok(()) } else { Err(NotAuthorized::Scopes { needed: self.required.clone() }) };
        }
        let path = PlainPath::parse(path).map_err(|AmbiguousPath| NotAuthorized::AmbiguousPath)?;
        let matching = || self.routes.iter().filter(|rule| rule.counts_for(method, &path));
        if enough && matching().all(|rule| covers(&rule.scopes)) {
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
