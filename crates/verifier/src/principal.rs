use std::{
    any::Any,
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{LazyLock, OnceLock},
    time::Duration,
};

use portcullis_metadata::{Issuer, Scopes, UnixTime};
use serde_json::{Map, Value};

use crate::said::Said;

/// Whom a verified token speaks for, and what it allows.
///
/// It is made by the verifier alone, reached through a [`VerifiedToken`](crate::VerifiedToken), and holds claims,
/// never the token. `Debug` shows neither the subject nor the other claims.
pub struct Principal {
    pub(crate) issuer: Issuer,
    pub(crate) subject: Option<Box<str>>,
    pub(crate) client: Option<Box<str>>,
    pub(crate) scopes: Scopes,
    pub(crate) expires: UnixTime,
    /// `exp` and the leeway; none where the issuer was asked and named no expiry.
    pub(crate) valid_until: Option<UnixTime>,
    /// When the issuer was asked, by the verifier's monotonic clock; none where it was not.
    pub(crate) introspected_at: Option<Duration>,
    pub(crate) said: Said,
    pub(crate) subjectless_client: bool,
    pub(crate) derived: Derived,
}

/// Room for what later stages make of a principal, each at most once.
#[derive(Default)]
pub(crate) struct Derived {
    for_requests: Room,
    for_records: Room,
    counts_as: OnceLock<u64>,
}

/// Room for one value of any type.
#[derive(Default)]
struct Room(OnceLock<Box<dyn Any + Send + Sync>>);

/// Drawn once a process, so that nobody can choose whose requests count with theirs.
static COUNTS_AS_KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Principal {
    /// The issuer that the token was verified for. Subjects of different issuers are never the same.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The `sub` claim, unique within the issuer. Tokens of machine clients may have none.
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// The client that the token was issued to: the `client_id` claim, in its absence `azp`.
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// The granted scopes, as the token names them.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The `exp` claim: from this moment on the token counts for nothing but the issuer's leeway. Where the issuer was
    /// asked and did not say, 30 s after it was.
    pub fn expires(&self) -> UnixTime {
        self.expires
    }

    /// The moment from which the verifier refuses the token: `exp` and the issuer's leeway. `None` where the issuer was
    /// asked and named no expiry: then only the issuer knows how long the token is valid.
    pub fn valid_until(&self) -> Option<UnixTime> {
        self.valid_until
    }

    /// Whether the issuer was asked about the token (RFC 7662), alone or after its signature was verified.
    pub fn is_introspected(&self) -> bool {
        self.introspected_at.is_some()
    }

    /// All claims, as the issuer signed them or, where it was asked and signed none, says them.
    ///
    /// A signed token's claims are put into this form when they are first asked for, and kept.
    pub fn claims(&self) -> &Map<String, Value> {
        self.said.claims()
    }

    /// The value of one claim: of its name or, where `path` begins with a slash, of a JSON pointer (RFC 6901) into the
    /// claims. None when there is none.
    ///
    /// ```
    /// # use portcullis_verifier::Principal;
    /// /// Whether the caller has a role that Keycloak gave it.
    /// fn has_role(principal: &Principal, role: &str) -> bool {
    ///     let roles = principal.claim("/realm_access/roles").and_then(|roles| roles.as_array());
    ///     roles.is_some_and(|roles| roles.iter().any(|held| held == role))
    /// }
    /// ```
    pub fn claim(&self, path: &str) -> Option<&Value> {
        self.said.claim(path)
    }

    /// Whether this is a client without a subject, at an issuer that is set to let such clients own sessions
    /// ([`IssuerSettings::subjectless_client`](crate::IssuerSettings::subjectless_client)).
    pub fn may_own_sessions_as_client(&self) -> bool {
        self.subjectless_client && self.subject().is_none() && self.client().is_some()
    }

    /// What a later stage makes of this principal, such as headers that say who calls: made at the first call, and
    /// kept beside the principal for every request with the same token. There is room for one such value; `None` when
    /// it is taken by a value of another type.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Option<&T> {
        self.derived.for_requests.get_or_make(|| make(self))
    }

    /// The same for what records of requests say of this principal, in a room of its own.
    pub fn recorded<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Option<&T> {
        self.derived.for_records.get_or_make(|| make(self))
    }

    /// Whose requests these are, for counting them: the same for all principals with this issuer and subject,
    /// whichever client they use, or with this issuer and client where they have no subject. A hash that differs from
    /// process to process, and that nobody outside can foresee.
    pub fn counts_as(&self) -> u64 {
        *self.derived.counts_as.get_or_init(|| {
            let (subject, client) = (self.subject(), self.client());
            COUNTS_AS_KEY.hash_one((self.issuer.as_str(), subject, client.filter(|_| subject.is_none())))
        })
    }
}

impl Derived {
    pub(crate) fn new() -> Self {
        Self::default()
    }
}

impl Room {
    fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl Principal {
    /// This one, with no more scopes and no more time than its issuer still grants. `scopes` is `None` when the issuer's
    /// answer names none, which takes none away; an empty list takes all.
    pub(crate) fn narrowed_to(mut self, scopes: Option<&Scopes>, answered: &Self) -> Self {
        if let Some(scopes) = scopes {
            self.scopes = self.scopes.intersection(scopes);
        }
        self.expires = self.expires.min(answered.expires);
        self.valid_until = [self.valid_until, answered.valid_until].into_iter().flatten().min();
        self.introspected_at = answered.introspected_at;
        self.derived = Derived::new();
        self
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}
