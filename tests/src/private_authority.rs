//! [`PrivateAuthority`]: a certificate authority that no system trusts.

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};

use crate::Scratch;

/// A certificate authority, with its certificate in a file.
pub struct PrivateAuthority {
    issuer: Issuer<'static, KeyPair>,
    file: Scratch,
}

impl PrivateAuthority {
    /// Generates an authority.
    ///
    /// # Panics
    /// Panics if there is no randomness or no folder for temporary files.
    #[expect(clippy::new_without_default, reason = "each one is different")]
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = Scratch::file("authority.pem", &certificate.pem());
        Self {
            issuer: Issuer::new(params, key),
            file,
        }
    }

    /// Returns the path of the authority's certificate.
    pub fn file(&self) -> &str {
        self.file.as_str()
    }

    /// Issues a certificate for a host, and returns it with its key.
    ///
    /// # Panics
    /// Panics if the host is not a name.
    pub fn issue(&self, host: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([host.to_owned()]).expect("a host name");
        (
            params.signed_by(&key, &self.issuer).expect("a certificate"),
            key,
        )
    }
}
