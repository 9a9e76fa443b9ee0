//! The target of a session, and the scopes whose sessions end together.

use std::{fmt, sync::Arc};

use portcullis_metadata::ResourceUri;
use sha2::{Digest, Sha256};

use crate::owner::Owner;

/// The resource of a session and the identity of the upstream behind it. Clones share the text.
///
/// A session continues only at the same resource with the same upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionTarget(Arc<Target>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Target {
    resource: ResourceUri,
    upstream: Box<str>,
}

impl SessionTarget {
    /// Returns the target with this resource and upstream. `upstream` is any text that differs
    /// between upstreams that do not share sessions, such as a URL.
    pub fn new(resource: ResourceUri, upstream: &str) -> Self {
        Self(Arc::new(Target {
            resource,
            upstream: upstream.into(),
        }))
    }

    /// Returns the resource.
    pub fn resource(&self) -> &ResourceUri {
        &self.0.resource
    }

    /// Returns the identity of the upstream.
    pub fn upstream(&self) -> &str {
        &self.0.upstream
    }
}

/// A resource whose upstream has no identity.
impl From<ResourceUri> for SessionTarget {
    fn from(resource: ResourceUri) -> Self {
        Self::new(resource, "")
    }
}

/// The sessions that [`SessionStore::end_scope`](crate::SessionStore::end_scope) ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndScope<'a> {
    /// The sessions of one owner, for all resources.
    Owner(Owner<'a>),
    /// The sessions of a subject with any client.
    Subject {
        /// The issuer.
        issuer: &'a str,
        /// The subject.
        subject: &'a str,
    },
    /// The sessions of a client with or without a subject.
    Client {
        /// The issuer.
        issuer: &'a str,
        /// The client.
        client: &'a str,
    },
    /// The sessions of all owners with tokens of this issuer.
    Issuer(&'a str),
    /// The sessions of a resource, with any upstream.
    Resource(&'a ResourceUri),
    /// The sessions of a resource with one upstream.
    Target(&'a SessionTarget),
    /// The sessions of all owners with tokens of one issuer, at one resource.
    ResourceIssuer {
        /// The resource.
        resource: &'a ResourceUri,
        /// The issuer; `None` for the sessions without authentication.
        issuer: Option<&'a str>,
    },
}

impl Owner<'_> {
    /// Returns the id of the scope of the owner's subject with all its clients; `None` without a
    /// subject.
    pub(crate) fn subject_scope(self) -> Option<ScopeId> {
        match self {
            Self::Subject {
                issuer, subject, ..
            } => Some(EndScope::Subject { issuer, subject }.id()),
            Self::Client { .. } | Self::Anonymous => None,
        }
    }
}

/// The id of a scope: a hash that is equal in all processes and does not contain the names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(pub [u8; 16]);

impl ScopeId {
    pub(crate) fn of_owner(owner: Owner<'_>) -> Self {
        Self::new(0, &owner.encode().parts())
    }

    pub(crate) fn of_encoded_owner(encoded: Option<&[u8]>) -> Self {
        encoded.map_or_else(
            || Self::of_owner(Owner::Anonymous),
            |encoded| Self::new(0, &[encoded]),
        )
    }

    fn new(variant: u8, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        hash.update([variant]);
        parts.iter().for_each(|part| hash.update(part));
        let hash: [u8; 32] = hash.finalize().into();
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        id[0] = id[0] & !Self::WIDE | if variant == 0 { 0 } else { Self::WIDE };
        Self(id)
    }

    /// The bit of the first byte that distinguishes owners from other scopes.
    const WIDE: u8 = 1 << 7;

    /// Returns whether the scope can contain sessions of several owners.
    pub(crate) fn is_wide(self) -> bool {
        self.0[0] & Self::WIDE != 0
    }
}

impl fmt::Debug for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeId({:032x})", u128::from_be_bytes(self.0))
    }
}

impl<'a> EndScope<'a> {
    /// Returns the id of the scope.
    pub fn id(&self) -> ScopeId {
        // The length of the first text makes the concatenation unambiguous.
        let pair = |variant, first: &str, second: &str| {
            ScopeId::new(
                variant,
                &[
                    &(first.len() as u64).to_be_bytes(),
                    first.as_bytes(),
                    second.as_bytes(),
                ],
            )
        };
        match *self {
            Self::Owner(owner) => ScopeId::of_owner(owner),
            Self::Subject { issuer, subject } => pair(1, issuer, subject),
            Self::Client { issuer, client } => pair(2, issuer, client),
            Self::Issuer(issuer) => pair(3, issuer, ""),
            Self::Resource(resource) => pair(4, resource.as_str(), ""),
            Self::Target(target) => pair(5, target.resource().as_str(), target.upstream()),
            Self::ResourceIssuer {
                resource,
                issuer: Some(issuer),
            } => pair(6, resource.as_str(), issuer),
            Self::ResourceIssuer {
                resource,
                issuer: None,
            } => pair(7, resource.as_str(), ""),
        }
    }

    /// Returns the [wide](ScopeId::is_wide) scopes that contain this owner's sessions at this
    /// target.
    pub(crate) fn wide(
        owner: Owner<'a>,
        target: &'a SessionTarget,
    ) -> impl Iterator<Item = EndScope<'a>> {
        let (issuer, subject, client) = match owner {
            Owner::Subject {
                issuer,
                subject,
                client,
            } => (Some(issuer), Some(subject), client),
            Owner::Client { issuer, client } => (Some(issuer), None, Some(client)),
            Owner::Anonymous => (None, None, None),
        };
        let of_issuer = issuer.into_iter().flat_map(move |issuer| {
            let subject = subject.map(|subject| Self::Subject { issuer, subject });
            let client = client.map(|client| Self::Client { issuer, client });
            [Some(Self::Issuer(issuer)), subject, client]
                .into_iter()
                .flatten()
        });
        let resource = target.resource();
        of_issuer.chain([
            Self::Resource(resource),
            Self::Target(target),
            Self::ResourceIssuer { resource, issuer },
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://a.example";

    fn target() -> SessionTarget {
        SessionTarget::new(
            ResourceUri::parse("https://r.example/mcp").unwrap(),
            "http://127.0.0.1:1",
        )
    }

    /// E12: different scopes have different ids, and an owner's id is that of its encoding.
    #[test]
    fn ids_are_distinct() {
        let target = target();
        let alice = Owner::Subject {
            issuer: ISSUER,
            subject: "alice",
            client: Some("app"),
        };
        let mut ids: Vec<ScopeId> = EndScope::wide(alice, &target)
            .map(|scope| scope.id())
            .collect();
        assert_eq!(ids.len(), 6);
        assert!(ids.iter().all(|id| id.is_wide()));
        assert!(!EndScope::Owner(alice).id().is_wide());

        ids.extend([
            EndScope::Owner(alice).id(),
            EndScope::Owner(Owner::Anonymous).id(),
            EndScope::Subject {
                issuer: "https://a.example/",
                subject: "alice",
            }
            .id(),
            EndScope::Subject {
                issuer: ISSUER,
                subject: "app",
            }
            .id(),
            EndScope::Subject {
                issuer: "https://a.exampl",
                subject: "ealice",
            }
            .id(),
            EndScope::Target(&SessionTarget::new(
                target.resource().clone(),
                "http://127.0.0.1:2",
            ))
            .id(),
            EndScope::ResourceIssuer {
                resource: target.resource(),
                issuer: Some("https://b.example"),
            }
            .id(),
            EndScope::ResourceIssuer {
                resource: target.resource(),
                issuer: Some(""),
            }
            .id(),
            EndScope::ResourceIssuer {
                resource: target.resource(),
                issuer: None,
            }
            .id(),
        ]);
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);

        let encoded = alice.encode().parts().concat();
        assert_eq!(
            ScopeId::of_encoded_owner(Some(&encoded)),
            EndScope::Owner(alice).id()
        );
        assert_eq!(
            ScopeId::of_encoded_owner(None),
            EndScope::Owner(Owner::Anonymous).id()
        );
    }

    #[test]
    fn only_scopes_of_the_resource_contain_anonymous_sessions() {
        let target = target();
        let scopes: Vec<_> = EndScope::wide(Owner::Anonymous, &target).collect();
        let resource = target.resource();
        let without_issuer = EndScope::ResourceIssuer {
            resource,
            issuer: None,
        };
        assert_eq!(
            scopes,
            [
                EndScope::Resource(resource),
                EndScope::Target(&target),
                without_issuer
            ]
        );
    }
}
