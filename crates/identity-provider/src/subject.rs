//! The `sub` of a user in tokens of this server.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// Distinguishes these hashes from others. A change gives all users other subjects.
const LABEL: &str = "portcullis identity provider subject 1";
/// The bytes of the hash that are kept: 128 bits.
const KEPT: usize = 16;

/// Returns the subject: the name of the provider, an underscore and 22 characters. `authority` is
/// the issuer or the tenant that assigns `id`.
pub(crate) fn subject(provider: &str, authority: &str, id: &str) -> Box<str> {
    let mut hash = Sha256::new();
    for part in [LABEL, provider, authority, id] {
        // The lengths keep the parts apart.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    format!("{provider}_{}", URL_SAFE_NO_PAD.encode(&digest[..KEPT])).into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// A change of this value would give every user another identity.
    #[test]
    fn the_subject_is_stable() {
        let subject = subject("entra", "tenant", "object");
        assert_eq!(&*subject, "entra_gImpbwUaKG4eYM9wndliGA");
    }

    proptest! {
        /// PR4: parts that are joined differently never give the same subject.
        #[test]
        fn moved_boundaries_give_other_subjects(text in "[a-c\\x00-\\x09]{0,8}") {
            let cuts: Vec<usize> = (0..=text.len()).collect();
            let mut seen = HashSet::new();
            for &first in &cuts {
                for &second in cuts.iter().filter(|&&second| second >= first) {
                    let (provider, rest) = text.split_at(first);
                    let (authority, id) = rest.split_at(second - first);
                    let hash = subject(provider, authority, id).split_off_hash();
                    prop_assert!(seen.insert(hash), "{provider:?} {authority:?} {id:?}");
                }
            }
        }

        /// PR4: the identifier does not show in the subject, which has 22 more characters than the
        /// name.
        #[test]
        fn the_subject_has_a_fixed_form(id in "\\PC{1,50}") {
            let subject = subject("github", "https://github.com", &id);
            let hash = subject.strip_prefix("github_").unwrap();
            prop_assert_eq!(hash.len(), 22);
            prop_assert!(hash.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
        }
    }

    trait Hash {
        fn split_off_hash(&self) -> String;
    }

    impl Hash for Box<str> {
        /// Returns the hash alone, because the name before it would differ anyway.
        fn split_off_hash(&self) -> String {
            self[self.len() - 22..].to_owned()
        }
    }
}
