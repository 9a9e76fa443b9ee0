//! Whether a certificate is for the host that clients connect to.

use openssl::x509::X509;
use portcullis_metadata::EscapedText;
use rustls::{
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName},
    server::ParsedCertificate,
};
use url::{Host, Url};

use super::Invalidity;

/// The most names of a certificate that are shown, and the most characters of each.
const MAX_SHOWN: usize = 5;
const MAX_TEXT: usize = 200;

/// Returns that clients reject the certificate at `base_url`, because it is for other names (RFC
/// 9525 section 6), and the fix. `None` also if the certificate is malformed. `key` is the key of
/// the file with its value.
pub(super) fn mismatch(
    certificate: &CertificateDer<'_>,
    base_url: &Url,
    key: &str,
) -> Option<Invalidity> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let host = match base_url.host()? {
        Host::Domain(name) => ServerName::try_from(name).ok()?,
        Host::Ipv4(address) => ServerName::from(std::net::IpAddr::V4(address)),
        Host::Ipv6(address) => ServerName::from(std::net::IpAddr::V6(address)),
    };
    verify_server_name(&parsed, &host).err()?;
    Some(Invalidity {
        is_rejected: true,
        text: format!(
            "{key} is for {}, and base_url = \"{base_url}\": clients reject it",
            names(certificate)
        ),
        fix: "name a certificate for the host of base_url, or correct base_url",
    })
}

/// Lists the names of a certificate.
fn names(certificate: &CertificateDer<'_>) -> String {
    let names = X509::from_der(certificate).ok().and_then(|certificate| {
        let names = certificate.subject_alt_names()?;
        let names = names.iter().filter_map(|name| match name.dnsname() {
            Some(name) => Some(EscapedText::first(name, MAX_TEXT).to_string()),
            None => name.ipaddress().and_then(address),
        });
        Some(names.take(MAX_SHOWN).collect::<Vec<_>>().join(", "))
    });
    names
        .filter(|names| !names.is_empty())
        .unwrap_or_else(|| "no host (it has no subjectAltName)".to_owned())
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(std::net::IpAddr::from);
    let v6 = <[u8; 16]>::try_from(bytes).map(std::net::IpAddr::from);
    v4.or(v6).ok().map(|address| address.to_string())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn text(names: &[&str], base_url: &str) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let base_url = Url::parse(base_url).unwrap();
        mismatch(certificate.der(), &base_url, "tls.certificates = /c.pem").map(|found| found.text)
    }

    /// J9: a certificate for other names is reported with them, and one for the host is not.
    #[test]
    fn other_names_are_reported() {
        for (names, base_url) in [
            (&["mcp.example.com"][..], "https://mcp.example.com"),
            (
                &["other.example", "mcp.example.com"],
                "https://mcp.example.com:8443",
            ),
            (&["*.example.com"], "https://mcp.example.com"),
            (&["127.0.0.1"], "https://127.0.0.1:3000"),
            (&["::1"], "https://[::1]:3000"),
        ] {
            assert_eq!(text(names, base_url), None, "{names:?}");
        }
        for (names, base_url, shown) in [
            (
                &["other.example"][..],
                "https://mcp.example.com",
                "other.example",
            ),
            (
                &["*.example.com"],
                "https://a.mcp.example.com",
                "*.example.com",
            ),
            (&["127.0.0.1", "::1"], "https://localhost", "127.0.0.1, ::1"),
            (
                &[],
                "https://mcp.example.com",
                "no host (it has no subjectAltName)",
            ),
        ] {
            let expected = format!(
                "tls.certificates = /c.pem is for {shown}, and base_url = \"{base_url}/\": clients reject it"
            );
            assert_eq!(text(names, base_url), Some(expected));
        }
        let malformed = CertificateDer::from(vec![0x30, 0]);
        let base_url = Url::parse("https://mcp.example.com").unwrap();
        assert_eq!(mismatch(&malformed, &base_url, "key"), None);
    }
}
