use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::Secret;
use zeroize::Zeroizing;

/// A reference that is handed out once and proves itself when it comes back: a code, a refresh token or a consent ticket.
///
/// Its first half finds the record; the whole is then compared in constant time.
#[derive(Clone)]
pub(crate) struct Handle(Secret);

const HALF_BYTES: usize = 16;
const HALF_CHARS: usize = 22;

impl Handle {
    /// A new handle of 2 x 128 random bits.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let (id, secret) = (random_text(HALF_BYTES)?, random_text(HALF_BYTES)?);
        Ok(Self(Secret::new(format!("{}{}", *id, *secret))))
    }

    /// A new secret for the same record.
    pub(crate) fn renewed(&self) -> Result<Self, getrandom::Error> {
        let secret = random_text(HALF_BYTES)?;
        Ok(Self(Secret::new(format!("{}{}", self.id(), *secret))))
    }

    /// Reads one that came back. Nothing is known about it yet but its length.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 2 * HALF_CHARS && text.is_ascii();
        fits.then(|| Self(Secret::new(text)))
    }

    /// The whole text, for the one whom it is meant for.
    pub(crate) fn text(&self) -> &str {
        self.0.secret()
    }

    /// The half that finds the record.
    pub(crate) fn id(&self) -> &str {
        &self.text()[..HALF_CHARS]
    }

    /// Whether this is the handle that was handed out, and not only its first half.
    pub(crate) fn proves(&self, original: &Self) -> bool {
        self.0 == original.0
    }
}

/// Base64url text of that many random bytes.
pub(crate) fn random_text(bytes: usize) -> Result<Zeroizing<String>, getrandom::Error> {
    let mut random = Zeroizing::new(vec![0; bytes]);
    getrandom::fill(&mut random)?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(&*random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_it_left() {
        let handle = Handle::generate().unwrap();
        let back = Handle::parse(handle.text()).unwrap();
        assert_eq!(back.id(), handle.id());
        assert!(back.proves(&handle));
    }

    #[test]
    fn another_secret_proves_nothing() {
        let handle = Handle::generate().unwrap();
        let forged = format!("{}{}", handle.id(), &*random_text(HALF_BYTES).unwrap());
        assert!(!Handle::parse(&forged).unwrap().proves(&handle));
    }

    #[test]
    fn a_renewed_handle_finds_the_same_record_and_proves_itself_alone() {
        let handle = Handle::generate().unwrap();
        let renewed = handle.renewed().unwrap();
        assert_eq!(renewed.id(), handle.id());
        assert!(!renewed.proves(&handle) && !handle.proves(&renewed));
    }

    #[test]
    fn other_lengths_and_letters_are_no_handles() {
        assert!(Handle::parse("").is_none());
        assert!(Handle::parse(&"a".repeat(43)).is_none());
        assert!(Handle::parse(&"é".repeat(22)).is_none());
    }
}
