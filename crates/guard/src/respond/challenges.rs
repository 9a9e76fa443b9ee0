//! [`Challenges`]: the `WWW-Authenticate` values of a resource.

use http::HeaderValue;
use portcullis_metadata::{BearerChallengeBuilder, BearerError, Scopes};
use url::Url;

/// The `WWW-Authenticate` values of one resource (RFC 6750 section 3, RFC 9728 section 5.1).
///
/// [`ProtectedResource::challenges`](crate::ProtectedResource::challenges) returns them, for a
/// service behind the guard that checks scopes itself.
///
/// ```
/// use http::{Response, StatusCode, header::WWW_AUTHENTICATE};
/// use portcullis_guard::{Challenges, Principal, metadata::Scopes};
///
/// /// Responds to a request that needs another scope.
/// fn insufficient_scope(challenges: &Challenges, principal: &Principal, needed: &Scopes) -> Response<String> {
///     let mut response = Response::new(String::new());
///     *response.status_mut() = StatusCode::FORBIDDEN;
///     let challenge = challenges.insufficient_scope(needed, principal.scopes());
///     response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
///     response
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Challenges {
    realm: Box<str>,
    metadata_url: Url,
    /// All scopes that the resource mentions in its metadata and rules.
    named_scopes: Scopes,
    /// The scopes in the metadata, in the form in which clients request them.
    listed_scopes: Vec<String>,
    without_error: HeaderValue,
    invalid_request: HeaderValue,
    invalid_token: HeaderValue,
}

impl Challenges {
    /// Creates the challenges of a resource that requires the scopes `required`.
    pub(crate) fn new(
        realm: &str,
        metadata_url: Url,
        required: &Scopes,
        named_scopes: Scopes,
        listed_scopes: Vec<String>,
    ) -> Self {
        let required = required.in_listed_form(&listed_scopes);
        let challenge = || BearerChallengeBuilder::new(realm, &metadata_url).scope(&required);
        Self {
            without_error: challenge().build(),
            invalid_request: challenge()
                .error(
                    BearerError::InvalidRequest,
                    "The request does not present exactly one well-formed bearer token",
                )
                .build(),
            invalid_token: challenge()
                .error(
                    BearerError::InvalidToken,
                    "The access token is expired, revoked or otherwise not accepted",
                )
                .build(),
            realm: realm.into(),
            metadata_url,
            named_scopes,
            listed_scopes,
        }
    }

    /// Returns the challenge for a 401 without a bearer token, or with one that cannot be verified
    /// now: `realm`, `resource_metadata`, and `scope` if the resource requires scopes.
    pub fn without_error(&self) -> &HeaderValue {
        &self.without_error
    }

    /// Returns the challenge with `error="invalid_request"`.
    pub fn invalid_request(&self) -> &HeaderValue {
        &self.invalid_request
    }

    /// Returns the challenge with `error="invalid_token"`.
    pub fn invalid_token(&self) -> &HeaderValue {
        &self.invalid_token
    }

    /// Returns the challenge for a 403. Its `scope` contains the `needed` scopes and those
    /// `granted` scopes that this resource mentions in its metadata, required scopes or routes,
    /// because a client replaces its scopes with these. A service with rules of its own must add
    /// the granted scopes that its rules mention to `needed`.
    ///
    /// As in the other challenges, a scope is named in the form in which it is requested
    /// ([`Scopes::in_listed_form`]).
    pub fn insufficient_scope(&self, needed: &Scopes, granted: &Scopes) -> HeaderValue {
        let listed_form = |scopes: &Scopes| scopes.in_listed_form(&self.listed_scopes);
        let is_named = |scopes: &Scopes| scopes.intersection(&self.named_scopes);
        // A granted scope can be named in either form.
        let kept = is_named(granted).union(&is_named(&listed_form(granted)));
        BearerChallengeBuilder::new(&self.realm, &self.metadata_url)
            .scope(&listed_form(&needed.union(&kept)))
            .error(
                BearerError::InsufficientScope,
                "The access token lacks scopes that this request needs",
            )
            .build()
    }
}
