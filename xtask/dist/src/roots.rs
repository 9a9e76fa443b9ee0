//! The root certificates of the container image: those of Mozilla, from the crate
//! `webpki-root-certs` in the version of `Cargo.lock`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// The length of a line of base64 (RFC 7468 section 2).
const LINE: usize = 64;

/// Returns the certificates in PEM. They depend on `Cargo.lock` alone, not on the machine that
/// builds the image.
pub(crate) fn pem() -> String {
    TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|certificate| block(certificate))
        .collect()
}

fn block(certificate: &[u8]) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let encoded = STANDARD.encode(certificate);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, following) = rest.split_at(LINE.min(rest.len()));
        text.push_str(line);
        text.push('\n');
        rest = following;
    }
    text + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::{CertificateDer, pem::PemObject as _};

    use super::*;

    /// Every certificate of the crate can be read back.
    #[test]
    fn the_pem_has_all_certificates() {
        let pem = pem();
        let read: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(read, TLS_SERVER_ROOT_CERTS);
        assert!(read.len() > 100, "{}", read.len());
        assert!(
            pem.lines().all(|line| line.len() <= LINE),
            "RFC 7468 section 2"
        );
    }
}
