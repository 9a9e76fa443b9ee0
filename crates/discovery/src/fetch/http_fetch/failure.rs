//! Finds out which step of a request failed, from the chain of causes.

use std::{error::Error, io};

use rustls::{CertificateError, OtherError};

use crate::{
    fetch::{
        error::FetchError,
        network_error::{CertificateProblem, NetworkError, NetworkFailure},
        resolver::Unresolved,
    },
    url_policy::UrlPolicyError,
};

/// Returns the error of a request, with the step that failed and the problem of the certificate. It
/// has no URL.
pub(super) fn fetch_error(error: reqwest::Error) -> FetchError {
    // The query of the URL must not appear in errors.
    let error = error.without_url();
    let mut failure = if error.is_connect() {
        NetworkFailure::Connect
    } else {
        NetworkFailure::Interrupted
    };
    let mut certificate = None;
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<UrlPolicyError>() {
            return FetchError::UrlPolicy(*error);
        } else if cause.is::<Unresolved>() {
            failure = NetworkFailure::Resolve;
        } else if let Some(tls) = tls_error(cause) {
            // Bytes that are not a TLS record are an invalid message.
            let is_tls = !matches!(tls, rustls::Error::InvalidMessage(_));
            failure = if is_tls {
                NetworkFailure::Tls
            } else {
                NetworkFailure::NotTls
            };
            certificate = certificate_problem(tls);
        }
        source = cause.source();
    }
    FetchError::Network(match certificate {
        Some(problem) => NetworkError::tls(problem, error),
        None => NetworkError::caused_by(failure, error),
    })
}

/// The TLS error in a cause. The connector wraps it in several I/O errors, whose `source` skips
/// what they contain.
fn tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut current = cause;
    loop {
        if let Some(tls) = current.downcast_ref() {
            return Some(tls);
        }
        current = current.downcast_ref::<io::Error>()?.get_ref()?;
    }
}

/// Why the certificate was rejected, if that is the error.
fn certificate_problem(error: &rustls::Error) -> Option<CertificateProblem> {
    let rustls::Error::InvalidCertificate(error) = error else {
        return None;
    };
    Some(match error {
        CertificateError::UnknownIssuer => CertificateProblem::UnknownIssuer,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            CertificateProblem::Expired
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            CertificateProblem::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateProblem::WrongName
        }
        CertificateError::Other(error) if is_of_authority(error) => CertificateProblem::OfAuthority,
        _ => CertificateProblem::Other,
    })
}

fn is_of_authority(error: &OtherError) -> bool {
    error.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::InvalidMessage;

    use super::*;

    #[test]
    fn a_tls_error_is_found_inside_io_errors() {
        let tls = || rustls::Error::InvalidCertificate(CertificateError::Expired);
        let nested = (0..3).fold(io::Error::other(tls()), |inner, _| io::Error::other(inner));
        assert_eq!(tls_error(&tls()), Some(&tls()));
        assert_eq!(tls_error(&nested), Some(&tls()));
        assert_eq!(tls_error(&io::Error::other(Unresolved::NoAddress)), None);
        assert_eq!(
            tls_error(&io::Error::from(io::ErrorKind::ConnectionReset)),
            None
        );
    }

    #[test]
    fn the_problem_of_a_certificate_is_named() {
        for (error, expected) in [
            (
                CertificateError::UnknownIssuer,
                CertificateProblem::UnknownIssuer,
            ),
            (CertificateError::Expired, CertificateProblem::Expired),
            (
                CertificateError::NotValidYet,
                CertificateProblem::NotYetValid,
            ),
            (
                CertificateError::NotValidForName,
                CertificateProblem::WrongName,
            ),
            (
                CertificateError::Other(OtherError(Arc::new(webpki::Error::CaUsedAsEndEntity))),
                CertificateProblem::OfAuthority,
            ),
            (CertificateError::Revoked, CertificateProblem::Other),
        ] {
            let problem = certificate_problem(&rustls::Error::InvalidCertificate(error.clone()));
            assert_eq!(problem, Some(expected), "{error:?}");
        }
        assert_eq!(
            certificate_problem(&rustls::Error::InvalidMessage(
                InvalidMessage::InvalidContentType
            )),
            None
        );
    }
}
