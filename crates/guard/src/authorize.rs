//! Which claims and scopes a request needs.

mod claim_rule;
mod path_glob;
mod route_rule;
mod scope_implications;
mod unambiguous_path;

use http::Method;
use portcullis_metadata::Scopes;
use portcullis_verifier::Principal;

use self::unambiguous_path::{AmbiguousPath, UnambiguousPath};
pub use self::{
    claim_rule::{ClaimDenial, ClaimDenials, ClaimRule, ClaimRuleError, ClaimTest},
    path_glob::{PathGlob, PathGlobError},
    route_rule::RouteRule,
    scope_implications::ScopeImplications,
};

/// Which layer enforces [`GuardSettings::required_scopes`](crate::GuardSettings::required_scopes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScopeEnforcer {
    /// The guard.
    Guard,
    /// The service behind the guard, which knows what else the request needs and can name all of it
    /// in one 403. The guard still names the scopes in its 401 challenges and still enforces the
    /// route rules.
    ///
    /// Every service behind the guard must then enforce the scopes.
    Inner,
}

/// The claims and scopes that requests need.
pub(crate) struct Rules {
    pub(crate) required: Scopes,
    pub(crate) enforced_by: ScopeEnforcer,
    pub(crate) implications: ScopeImplications,
    pub(crate) claims: Vec<ClaimRule>,
    pub(crate) routes: Vec<RouteRule>,
}

/// An authorized request.
pub(crate) struct Authorized {
    /// The denial by a report-only rule.
    pub(crate) report_only_denial: Option<ClaimDenial>,
}

/// Why a request is not authorized.
#[derive(Debug)]
pub(crate) enum NotAuthorized {
    /// The path is ambiguous, so no route rule can be applied.
    AmbiguousPath,
    /// A claim rule denies the request.
    Claims(ClaimDenial),
    /// Scopes are missing. `needed` contains all scopes that the request needs.
    Scopes { needed: Scopes },
}

impl Rules {
    /// Checks the claims and scopes of a principal.
    ///
    /// Claims are checked first, so that a client does not request scopes that would not help.
    /// Nothing is allocated if there are no claim rules and the path has no percent-encoded
    /// characters.
    pub(crate) fn authorize(
        &self,
        method: &Method,
        path: &str,
        principal: &Principal,
    ) -> Result<Authorized, NotAuthorized> {
        let mut denials = ClaimDenials::default();
        denials.evaluate(&self.claims, principal);
        if let Some(denial) = denials.enforced {
            return Err(NotAuthorized::Claims(denial));
        }
        self.check_scopes(method, path, principal.scopes())?;
        Ok(Authorized {
            report_only_denial: denials.report_only,
        })
    }

    fn check_scopes(
        &self,
        method: &Method,
        path: &str,
        granted: &Scopes,
    ) -> Result<(), NotAuthorized> {
        let covers = |needed| self.implications.covers(granted, needed);
        let has_required = self.enforced_by == ScopeEnforcer::Inner || covers(&self.required);
        if self.routes.is_empty() {
            return if has_required {
                Ok(())
            } else {
                Err(NotAuthorized::Scopes {
                    needed: self.required.clone(),
                })
            };
        }
        let path =
            UnambiguousPath::parse(path).map_err(|AmbiguousPath| NotAuthorized::AmbiguousPath)?;
        let matching = || {
            self.routes
                .iter()
                .filter(|rule| rule.matches(method, &path))
        };
        if has_required && matching().all(|rule| covers(&rule.scopes)) {
            return Ok(());
        }
        // All needed scopes are named, so that the client has to request scopes only once.
        let needed = matching().fold(self.required.clone(), |needed, rule| {
            needed.union(&rule.scopes)
        });
        Err(NotAuthorized::Scopes { needed })
    }
}
