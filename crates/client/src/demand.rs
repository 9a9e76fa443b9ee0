use http::{HeaderMap, HeaderValue, header};
use portcullis_metadata::{BearerChallenge, Challenge, Scopes, parse_challenges};

use crate::dpop;

/// What a resource asks for when it refuses a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    /// The parameters of its challenge, where one could be read.
    pub(crate) challenge: Option<BearerChallenge>,
    more: Scopes,
    may_bind: bool,
    must_bind: bool,
}

impl Demand {
    /// Of an answer's headers. A challenge that cannot be read counts as none: the well-known URLs remain.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::WWW_AUTHENTICATE).iter().map(HeaderValue::as_bytes);
        let challenges = parse_challenges(values).unwrap_or_default();
        let bearer = BearerChallenge::from_challenges(&challenges);
        let bound = challenges.iter().find(|challenge| challenge.is_scheme("DPoP"));
        Self {
            may_bind: bound.is_some(),
            must_bind: bound.is_some() && bearer.is_none(),
            challenge: bearer.or_else(|| bound.map(parameters)),
            more: Scopes::empty(),
        }
    }

    /// Of a challenge for tokens that are bound to nothing.
    pub(crate) fn bearer(challenge: Option<&BearerChallenge>) -> Self {
        Self { challenge: challenge.cloned(), ..Self::default() }
    }

    /// The same, and scopes to ask for beside those that the challenge and the metadata name.
    pub(crate) fn and(&self, more: &Scopes) -> Self {
        Self { more: self.more.union(more), ..self.clone() }
    }

    pub(crate) fn more(&self) -> &Scopes {
        &self.more
    }

    /// The scopes that the challenge names.
    pub(crate) fn scopes(&self) -> Option<&Scopes> {
        self.challenge.as_ref()?.scope.as_ref()
    }

    /// The scopes that are missing, when that is what is wrong (RFC 6750 section 3.1).
    pub(crate) fn missing_scopes(&self) -> Option<&Scopes> {
        let challenge = self.challenge.as_ref()?;
        challenge.scope.as_ref().filter(|_| challenge.error.as_deref() == Some("insufficient_scope"))
    }

    /// Whether a proof has to carry the server's nonce (RFC 9449 section 9).
    pub(crate) fn wants_nonce(&self) -> bool {
        self.may_bind && self.challenge.as_ref().is_some_and(|it| it.error.as_deref() == Some(dpop::WANTS_NONCE))
    }

    /// Whether the resource takes tokens that are bound by DPoP and no others.
    pub(crate) fn must_bind(&self) -> bool {
        self.must_bind
    }

    /// Whether it takes tokens that are bound by DPoP.
    pub(crate) fn may_bind(&self) -> bool {
        self.may_bind
    }
}

/// A DPoP challenge has the parameters of a bearer challenge (RFC 9449 section 7.1, RFC 9728 section 5.1).
fn parameters(challenge: &Challenge) -> BearerChallenge {
    let text = |name| challenge.param(name).map(str::to_owned);
    BearerChallenge {
        realm: text("realm"),
        resource_metadata: text("resource_metadata"),
        scope: challenge.param("scope").and_then(|scope| Scopes::parse(scope).ok()).filter(|s| !s.is_empty()),
        error: text("error"),
        error_description: text("error_description"),
        error_uri: text("error_uri"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(values: &[&'static str]) -> Demand {
        let values = values.iter().map(|value| (header::WWW_AUTHENTICATE, HeaderValue::from_static(value)));
        Demand::of(&values.collect::<HeaderMap>())
    }

    fn judged(values: &[&'static str]) -> (bool, bool, bool, Option<String>) {
        let demand = demand(values);
        let missing = demand.missing_scopes().map(ToString::to_string);
        (demand.must_bind(), demand.may_bind(), demand.wants_nonce(), missing)
    }

    /// I6, I8: what a refusal asks for, by its challenges.
    #[test]
    fn a_refusal_says_what_it_wants() {
        assert_eq!(judged(&[]), (false, false, false, None));
        assert_eq!(judged(&["Bearer realm=\""]), (false, false, false, None));
        assert_eq!(judged(&[r#"Bearer error="invalid_token", scope="a""#]), (false, false, false, None));
        let few = r#"Bearer error="insufficient_scope", scope="b a""#;
        assert_eq!(judged(&[few]), (false, false, false, Some("a b".into())));
        assert_eq!(judged(&[r#"Bearer error="insufficient_scope""#]), (false, false, false, None));
        assert_eq!(judged(&["Basic realm=\"a\"", r#"DPoP error="use_dpop_nonce""#]), (true, true, true, None));
        assert_eq!(judged(&["DPoP algs=\"ES256\"", few]), (false, true, false, Some("a b".into())));
        let bound = r#"DPoP error="insufficient_scope", scope="a""#;
        assert_eq!(judged(&[bound]), (true, true, false, Some("a".into())));
    }
}
