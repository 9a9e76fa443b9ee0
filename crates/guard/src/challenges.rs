use http::HeaderValue;
use portcullis_metadata::{BearerChallengeBuilder, BearerError, Scopes};
use url::Url;

/// The `WWW-Authenticate` values of one resource (RFC 6750 section 3, RFC 9728 section 5.1), built once.
#[derive(Clone, Debug)]
pub struct Challenges {
    realm: Box<str>,
    metadata_url: Url,
    named: Scopes,
    without_error: HeaderValue,
    invalid_request: HeaderValue,
    invalid_token: HeaderValue,
}

impl Challenges {
    /// `named` are all scopes that the resource speaks of.
    pub(crate) fn new(realm: &str, metadata_url: Url, required: &Scopes, named: Scopes) -> Self {
        let challenge = || BearerChallengeBuilder::new(realm, &metadata_url).scope(required);
        Self {
            without_error: challenge().build(),
            invalid_request: challenge()
                .error(BearerError::InvalidRequest, "The request does not present exactly one well-formed bearer token")
                .build(),
            invalid_token: challenge()
                .error(BearerError::InvalidToken, "The access token is expired, revoked or otherwise not accepted")
                .build(),
            realm: realm.into(),
            metadata_url,
            named,
        }
    }

    /// For a 401 when no bearer token came, or it could not be judged: `realm`, `resource_metadata`, and `scope` where
    /// the resource requires scopes.
    pub fn without_error(&self) -> &HeaderValue {
        &self.without_error
    }

    /// The same with `error="invalid_request"`.
    pub fn invalid_request(&self) -> &HeaderValue {
        &self.invalid_request
    }

    /// The same with `error="invalid_token"`.
    pub fn invalid_token(&self) -> &HeaderValue {
        &self.invalid_token
    }

    /// For a 403: `scope` has all that is `needed`, joined with those of the `granted` scopes that this
    /// resource names (in its metadata, required scopes or routes), because clients replace the scopes they
    /// hold by these. A service with rules of its own adds the granted scopes that *they* name to `needed`.
    pub fn insufficient_scope(&self, needed: &Scopes, granted: &Scopes) -> HeaderValue {
        BearerChallengeBuilder::new(&self.realm, &self.metadata_url)
            .scope(&needed.union(&granted.intersection(&self.named)))
            .error(BearerError::InsufficientScope, "The access token lacks scopes that this request needs")
            .build()
    }
}
