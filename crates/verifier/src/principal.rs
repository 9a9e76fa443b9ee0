use std::{any::Any, fmt, time::Duration};

use portcullis_metadata::{Issuer, Scopes, UnixTime};
use serde_json::{Map, Value};

use crate::{attachments::Attachments, json_claims::JsonClaims, limit_hasher::LimitHasher};

/// The identity that a verified token names, and what the token grants.
///
/// Only the verifier creates it, inside a [`VerifiedToken`](crate::VerifiedToken). It contains
/// claims, never the token. `Debug` prints neither the subject nor other claims.
pub struct Principal {
    fields: PrincipalFields,
    limit_key: u64,
    attachments: Attachments,
}

/// The checked values from which a [`Principal`] is created.
pub(crate) struct PrincipalFields {
    pub(crate) issuer: Issuer,
    pub(crate) subject: Option<Box<str>>,
    pub(crate) client: Option<Box<str>>,
    pub(crate) scopes: Scopes,
    pub(crate) expires: UnixTime,
    /// `exp` plus the leeway, or `None` without `exp`.
    pub(crate) valid_until: Option<UnixTime>,
    /// The monotonic time of the introspection, or `None` if the token was not introspected.
    pub(crate) introspected_at: Option<Duration>,
    pub(crate) claims: JsonClaims,
    /// Whether clients without a subject may own sessions.
    pub(crate) subjectless_client: bool,
}

/// Returns a subject or a client. An empty one names nobody, so it counts as absent.
pub(crate) fn non_empty(name: Option<&str>) -> Option<Box<str>> {
    name.filter(|name| !name.is_empty()).map(Into::into)
}

impl Principal {
    /// Creates a principal from values that were checked.
    pub(crate) fn new(fields: PrincipalFields) -> Self {
        let subject = fields.subject.as_deref();
        let client = fields.client.as_deref();
        let counted = (
            fields.issuer.as_str(),
            subject,
            client.filter(|_| subject.is_none()),
        );
        let limit_key = LimitHasher::of_process().hash(counted);
        Self {
            fields,
            limit_key,
            attachments: Attachments::default(),
        }
    }

    /// Returns the issuer of the token. Subjects are unique only within their issuer.
    pub fn issuer(&self) -> &Issuer {
        &self.fields.issuer
    }

    /// Returns the `sub` claim, which is unique within the issuer. A client's own token may have
    /// none.
    pub fn subject(&self) -> Option<&str> {
        self.fields.subject.as_deref()
    }

    /// Returns the client to which the token was issued: the `client_id` claim or, if it is
    /// missing, `azp`.
    pub fn client(&self) -> Option<&str> {
        self.fields.client.as_deref()
    }

    /// Returns the granted scopes. The verifier does not check them against any requirement.
    pub fn scopes(&self) -> &Scopes {
        &self.fields.scopes
    }

    /// Returns the expiration time: `exp` of the signed claims or of the introspection response,
    /// whichever is earlier. If there is neither, returns 30 s after the response.
    pub fn expires(&self) -> UnixTime {
        self.fields.expires
    }

    /// Returns the time from which the verifier rejects the token: the expiration time plus the
    /// issuer's leeway. Returns `None` if neither signed claims nor the introspection response have
    /// `exp`; then only the issuer knows how long the token is valid.
    pub fn valid_until(&self) -> Option<UnixTime> {
        self.fields.valid_until
    }

    /// Returns whether the token was introspected (RFC 7662), with or without a verified signature.
    pub fn is_introspected(&self) -> bool {
        self.fields.introspected_at.is_some()
    }

    /// Returns the monotonic time of the introspection, or `None` if the token was not
    /// introspected.
    pub(crate) fn introspected_at(&self) -> Option<Duration> {
        self.fields.introspected_at
    }

    /// Returns all claims: those of the signed payload or, if no signature was verified, of the
    /// introspection response.
    ///
    /// The claims are parsed on the first call.
    pub fn claims(&self) -> &Map<String, Value> {
        self.fields.claims.all()
    }

    /// Returns a claim by its name or, if `path` starts with `/`, by a JSON pointer (RFC 6901) into
    /// the claims.
    ///
    /// ```
    /// # use portcullis_verifier::Principal;
    /// /// Returns whether Keycloak has given the caller a role.
    /// fn has_role(principal: &Principal, role: &str) -> bool {
    ///     let roles = principal.claim("/realm_access/roles").and_then(|roles| roles.as_array());
    ///     roles.is_some_and(|roles| roles.iter().any(|held| held == role))
    /// }
    /// ```
    pub fn claim(&self, path: &str) -> Option<&Value> {
        self.fields.claims.get(path)
    }

    /// Returns whether this is a client without a subject that may own sessions
    /// ([`IssuerSettings::subjectless_client`](crate::IssuerSettings::subjectless_client)).
    pub fn may_own_sessions_as_client(&self) -> bool {
        self.fields.subjectless_client && self.subject().is_none() && self.client().is_some()
    }

    /// Returns the key by which requests are counted for limits: a hash of the issuer and the
    /// subject or, if there is no subject, of the issuer and the client.
    ///
    /// The hash is keyed, so clients cannot cause collisions; see [`LimitHasher`].
    pub fn limit_key(&self) -> u64 {
        self.limit_key
    }

    /// Returns the value of this type that was derived from the principal, such as the text of its
    /// log lines. The first call derives it, and it is kept as long as the principal is cached. A
    /// value that also depends on something else must contain it, so that the caller can compare
    /// it. Returns `None` if three values of other types are attached.
    pub fn attach<T: Any + Send + Sync>(&self, make: impl Fn(&Self) -> T) -> Option<&T> {
        self.attachments.get_or_attach(|| make(self))
    }

    /// Returns this principal, restricted to the scopes and lifetime that an introspection response
    /// still grants.
    ///
    /// A response without `scope` (`None`) does not restrict the scopes. An empty scope list
    /// removes all scopes.
    pub(crate) fn narrowed_to(self, scopes: Option<&Scopes>, introspected: &Self) -> Self {
        let signed = self.fields;
        let introspected = &introspected.fields;
        let scopes = scopes.map(|scopes| signed.scopes.intersection(scopes));
        Self::new(PrincipalFields {
            scopes: scopes.unwrap_or(signed.scopes),
            expires: signed.expires.min(introspected.expires),
            valid_until: [signed.valid_until, introspected.valid_until]
                .into_iter()
                .flatten()
                .min(),
            introspected_at: introspected.introspected_at,
            ..signed
        })
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("issuer", &self.fields.issuer)
            .field("scopes", &self.fields.scopes)
            .field("expires", &self.fields.expires)
            .finish_non_exhaustive()
    }
}
