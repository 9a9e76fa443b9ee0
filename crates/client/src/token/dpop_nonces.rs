//! [`DpopNonces`]: the latest nonce of each server (RFC 9449 section 8).

use url::Origin;

/// The latest nonce of each origin, at most [`MAX_NONCES`]. The one stored first is removed first.
#[derive(Default)]
pub(super) struct DpopNonces(Vec<(Origin, String)>);

/// The maximum number of nonces. In practice there are the authorization server and the resource.
const MAX_NONCES: usize = 4;
/// The maximum length of a nonce. Longer ones are ignored.
const MAX_NONCE: usize = 512;

impl DpopNonces {
    /// Stores the nonce of an origin, and returns whether it differs from the previous one. A nonce
    /// that is empty, too long, or not printable ASCII is ignored.
    pub(super) fn set(&mut self, origin: &Origin, nonce: &str) -> bool {
        if nonce.is_empty()
            || nonce.len() > MAX_NONCE
            || !nonce.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return false;
        }
        if let Some((_, held)) = self.0.iter_mut().find(|(held, _)| held == origin) {
            let is_new = held != nonce;
            nonce.clone_into(held);
            return is_new;
        }
        if self.0.len() == MAX_NONCES {
            self.0.remove(0);
        }
        self.0.push((origin.clone(), nonce.to_owned()));
        true
    }

    /// Returns the latest nonce of an origin.
    pub(super) fn get(&self, origin: &Origin) -> Option<&str> {
        self.0
            .iter()
            .find(|(held, _)| held == origin)
            .map(|(_, nonce)| nonce.as_str())
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn origin(host: usize) -> Origin {
        Url::parse(&format!("https://h{host}.example.com/"))
            .unwrap()
            .origin()
    }

    #[test]
    fn an_origin_has_its_latest_nonce() {
        let mut nonces = DpopNonces::default();
        assert!(nonces.set(&origin(1), "one"));
        assert!(nonces.set(&origin(2), "other"));
        assert!(!nonces.set(&origin(1), "one"));
        assert!(nonces.set(&origin(1), "two"));
        assert_eq!(
            [1, 2, 3].map(|host| nonces.get(&origin(host))),
            [Some("two"), Some("other"), None]
        );
    }

    #[test]
    fn an_invalid_nonce_is_ignored() {
        let mut nonces = DpopNonces::default();
        for invalid in ["", "a b", "\u{7f}", "ä", &"n".repeat(MAX_NONCE + 1)] {
            assert!(!nonces.set(&origin(1), invalid), "{invalid}");
        }
        assert!(nonces.set(&origin(1), &"n".repeat(MAX_NONCE)));
    }

    #[test]
    fn the_number_of_nonces_is_limited() {
        let mut nonces = DpopNonces::default();
        for host in 0..=MAX_NONCES {
            assert!(nonces.set(&origin(host), "n"));
        }
        assert_eq!(nonces.0.len(), MAX_NONCES);
        assert_eq!(nonces.get(&origin(0)), None);
    }
}
