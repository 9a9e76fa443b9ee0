//! [`ResourceChallenge`]: the `WWW-Authenticate` challenges of a protected resource.

use http::{HeaderMap, HeaderValue, header};
use portcullis_metadata::{BearerChallenge, Challenge, Scopes, parse_challenges};

use crate::{scope_limit::within_limit, token::dpop};

/// The `Bearer` and `DPoP` challenges of a response (RFC 6750 section 3, RFC 9449 section 7.1).
#[derive(Clone, Debug, Default)]
pub struct ResourceChallenge {
    /// Those of the `Bearer` challenge, else of the `DPoP` challenge.
    parameters: Option<BearerChallenge>,
    /// The scopes to request beside those of the challenge.
    additional_scopes: Scopes,
    accepts_dpop: bool,
    requires_dpop: bool,
    is_step_up: bool,
}

impl ResourceChallenge {
    /// Parses the `WWW-Authenticate` fields of a response. If one is malformed, all count as
    /// absent: discovery then uses the well-known URLs. More than 1,000 scopes count as none.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers
            .get_all(header::WWW_AUTHENTICATE)
            .iter()
            .map(HeaderValue::as_bytes);
        let challenges = parse_challenges(values).unwrap_or_default();
        let bearer = BearerChallenge::from_challenges(&challenges).map(with_few_scopes);
        let dpop = challenges
            .iter()
            .find(|challenge| challenge.is_scheme("DPoP"));
        Self {
            accepts_dpop: dpop.is_some(),
            requires_dpop: dpop.is_some() && bearer.is_none(),
            parameters: bearer.or_else(|| dpop.map(dpop_parameters).map(with_few_scopes)),
            additional_scopes: Scopes::empty(),
            is_step_up: false,
        }
    }

    /// A challenge for bearer tokens.
    pub(crate) fn from_bearer(challenge: Option<&BearerChallenge>) -> Self {
        Self {
            parameters: challenge.cloned().map(with_few_scopes),
            ..Self::default()
        }
    }

    /// Adds scopes to request beside those of the challenge and of the resource's metadata.
    pub(crate) fn with_scopes(&self, scopes: &Scopes) -> Self {
        Self {
            additional_scopes: self.additional_scopes.union(scopes),
            ..self.clone()
        }
    }

    /// Marks that these scopes are requested for an operation of a client that is signed in, which
    /// may have a session.
    pub(crate) fn for_step_up(&self, missing: &Scopes) -> Self {
        Self {
            is_step_up: true,
            ..self.with_scopes(missing)
        }
    }

    /// Whether a client that is signed in needs more scopes.
    pub(crate) fn is_step_up(&self) -> bool {
        self.is_step_up
    }

    /// The scopes to request beside those of the challenge and of the resource's metadata.
    pub(crate) fn additional_scopes(&self) -> &Scopes {
        &self.additional_scopes
    }

    /// The parameters of the `Bearer` challenge, else of the `DPoP` challenge.
    pub fn parameters(&self) -> Option<&BearerChallenge> {
        self.parameters.as_ref()
    }

    /// The `scope` parameter.
    pub fn scopes(&self) -> Option<&Scopes> {
        self.parameters()?.scope.as_ref()
    }

    /// Whether the error is `insufficient_scope` (RFC 6750 section 3.1).
    pub fn is_insufficient_scope(&self) -> bool {
        self.has_error("insufficient_scope")
    }

    /// The scopes to request in a step-up: those of an `insufficient_scope` error.
    pub(crate) fn missing_scopes(&self) -> Option<&Scopes> {
        self.scopes().filter(|_| self.is_insufficient_scope())
    }

    /// Whether the DPoP proof must contain the server's nonce (RFC 9449 section 9).
    pub(crate) fn requires_dpop_nonce(&self) -> bool {
        self.accepts_dpop && self.has_error(dpop::USE_DPOP_NONCE)
    }

    /// Whether the resource accepts only DPoP-bound tokens.
    pub(crate) fn requires_dpop(&self) -> bool {
        self.requires_dpop
    }

    /// Whether the resource accepts DPoP-bound tokens.
    pub(crate) fn accepts_dpop(&self) -> bool {
        self.accepts_dpop
    }

    fn has_error(&self, code: &str) -> bool {
        self.parameters()
            .is_some_and(|parameters| parameters.error.as_deref() == Some(code))
    }
}

fn with_few_scopes(parameters: BearerChallenge) -> BearerChallenge {
    let scope = parameters.scope.clone().and_then(within_limit);
    BearerChallenge {
        scope,
        ..parameters
    }
}

/// Reads the parameters of a DPoP challenge, which are those of a Bearer challenge (RFC 9449
/// section 7.1, RFC 9728 section 5.1).
fn dpop_parameters(challenge: &Challenge) -> BearerChallenge {
    let text = |name| challenge.param(name).map(str::to_owned);
    BearerChallenge {
        realm: text("realm"),
        resource_metadata: text("resource_metadata"),
        scope: challenge
            .param("scope")
            .and_then(|scope| Scopes::parse(scope).ok())
            .filter(|s| !s.is_empty()),
        error: text("error"),
        error_description: text("error_description"),
        error_uri: text("error_uri"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Requirements {
        requires_dpop: bool,
        accepts_dpop: bool,
        requires_nonce: bool,
        missing_scopes: Option<String>,
    }

    fn parsed(values: &[&'static str]) -> Requirements {
        let values = values
            .iter()
            .map(|value| (header::WWW_AUTHENTICATE, HeaderValue::from_static(value)));
        let challenge = ResourceChallenge::from_headers(&values.collect::<HeaderMap>());
        Requirements {
            requires_dpop: challenge.requires_dpop(),
            accepts_dpop: challenge.accepts_dpop(),
            requires_nonce: challenge.requires_dpop_nonce(),
            missing_scopes: challenge.missing_scopes().map(ToString::to_string),
        }
    }

    /// I6, I8: the requirements of a resource are parsed from its challenges.
    #[test]
    fn challenges_state_what_the_resource_requires() {
        const FEW_SCOPES: &str = r#"Bearer error="insufficient_scope", scope="b a""#;
        for values in [
            &[][..],
            &["Bearer realm=\""],
            &["Bearer realm=\"", FEW_SCOPES],
            &[r#"Bearer error="invalid_token", scope="a""#],
            &[r#"Bearer error="insufficient_scope""#],
        ] {
            assert_eq!(parsed(values), Requirements::default(), "{values:?}");
        }

        let missing_scopes = Some("a b".to_owned());
        let bearer = Requirements {
            missing_scopes: missing_scopes.clone(),
            ..Requirements::default()
        };
        assert_eq!(parsed(&[FEW_SCOPES]), bearer);
        assert_eq!(
            parsed(&["DPoP algs=\"ES256\"", FEW_SCOPES]),
            Requirements {
                accepts_dpop: true,
                ..bearer
            }
        );

        let dpop = || Requirements {
            requires_dpop: true,
            accepts_dpop: true,
            ..Requirements::default()
        };
        assert_eq!(
            parsed(&["Basic realm=\"a\"", r#"DPoP error="use_dpop_nonce""#]),
            Requirements {
                requires_nonce: true,
                ..dpop()
            }
        );
        assert_eq!(
            parsed(&[r#"DPoP error="insufficient_scope", scope="b a""#]),
            Requirements {
                missing_scopes,
                ..dpop()
            }
        );
    }
}
