//! Who used what, as records and rows of usage have it.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::LazyLock,
};

use portcullis_metadata::ResourceUri;
use portcullis_verifier::Principal;

use super::record;
use crate::recorded::Recorded;

/// Drawn once a process, so that no client can name tools that meet in a table.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The JSON members that say who used what, and a hash that is the same for the same members.
#[derive(Default)]
pub(super) struct Who {
    members: Vec<u8>,
    hash: u64,
}

/// The members that all requests with one token share, put together once and kept beside its principal.
pub(crate) struct User {
    resource: ResourceUri,
    members: Box<[u8]>,
    hash: u64,
}

impl Who {
    /// Forgets whom it was about, and is about these.
    pub(super) fn set(&mut self, resource: &ResourceUri, principal: Option<&Principal>, tool: Option<&str>) {
        self.members.clear();
        match principal.and_then(|principal| User::kept(resource, principal)) {
            Some(user) => {
                self.members.extend_from_slice(&user.members);
                self.hash = user.hash;
            }
            // There is nothing to keep it beside, or it is kept for another resource.
            None => {
                write_user(&mut self.members, resource, principal);
                self.hash = hash(&self.members);
            }
        }
        if let Some(tool) = tool {
            let user = self.members.len();
            record::tool(&mut self.members, tool);
            self.hash ^= hash(&self.members[user..]);
        }
    }

    pub(super) fn members(&self) -> &[u8] {
        &self.members
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }
}

impl User {
    fn kept<'a>(resource: &ResourceUri, principal: &'a Principal) -> Option<&'a Self> {
        let user = Recorded::of(principal)?.audit.get_or_init(|| Self::new(resource, principal));
        (user.resource == *resource).then_some(user)
    }

    fn new(resource: &ResourceUri, principal: &Principal) -> Self {
        let mut members = Vec::new();
        write_user(&mut members, resource, Some(principal));
        Self { resource: resource.clone(), hash: hash(&members), members: members.into() }
    }
}

fn write_user(out: &mut Vec<u8>, resource: &ResourceUri, principal: Option<&Principal>) {
    record::resource(out, resource.as_str());
    if let Some(principal) = principal {
        record::principal(out, principal.issuer().as_str(), principal.subject(), principal.client());
    }
}

fn hash(members: &[u8]) -> u64 {
    let mut hasher = KEY.build_hasher();
    hasher.write(members);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::TestIssuer;
    use portcullis_verifier::VerifiedToken;
    use proptest::prelude::*;

    use super::*;
    use crate::recorded::testing::{Bench, any_text, resource};

    fn set(who: &mut Who, resource: &ResourceUri, verified: &VerifiedToken, tool: Option<&str>) -> (Vec<u8>, u64) {
        who.set(resource, Some(verified.principal()), tool);
        (who.members().to_vec(), who.hash())
    }

    /// What it would be if nothing were kept.
    fn plain(resource: &ResourceUri, verified: &VerifiedToken, tool: Option<&str>) -> Vec<u8> {
        let mut out = Vec::new();
        write_user(&mut out, resource, Some(verified.principal()));
        if let Some(tool) = tool {
            record::tool(&mut out, tool);
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// J4: what is kept beside a principal changes neither what is said of it nor where it is counted, whichever
        /// resource asked first.
        #[test]
        fn what_is_kept_changes_nothing(
            subject in any_text(), client in any_text(), tool in proptest::option::of(any_text())
        ) {
            let bench = Bench::new();
            let (here, there) = (resource(TestIssuer::RESOURCE), resource("https://mcp.example.com/other"));
            let (one, again) = (bench.verified(&subject, &client), bench.verified(&subject, &client));
            let (mut who, tool) = (Who::default(), tool.as_deref());
            let first = set(&mut who, &here, &one, tool);
            prop_assert_eq!(&first.0, &plain(&here, &one, tool));
            prop_assert_eq!(&set(&mut who, &here, &one, tool), &first);
            prop_assert_eq!(set(&mut who, &there, &one, tool).0, plain(&there, &one, tool));
            set(&mut who, &there, &again, None);
            prop_assert_eq!(&set(&mut who, &here, &again, tool), &first);
            let other = set(&mut who, &here, &again, Some("another tool altogether"));
            prop_assert!(other.0 != first.0 && other.1 != first.1);
        }
    }

    /// J4: whoever has no token is told as such, and counted by resource and tool.
    #[test]
    fn nobody_is_told_too() {
        let mut who = Who::default();
        who.set(&resource(TestIssuer::RESOURCE), None, Some("add"));
        let (members, hash) = (who.members().to_vec(), who.hash());
        assert_eq!(members, br#""resource":"https://mcp.example.com/mcp","mcp.tool":"add""#);
        who.set(&resource(TestIssuer::RESOURCE), None, None);
        assert_eq!(who.members(), br#""resource":"https://mcp.example.com/mcp""#);
        assert_ne!(who.hash(), hash);
        who.set(&resource(TestIssuer::RESOURCE), None, Some("add"));
        assert_eq!((who.members(), who.hash()), (&*members, hash));
    }
}
