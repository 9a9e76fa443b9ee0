//! [`CompactJws`]: the JWS compact serialization, received or signed here.

use std::fmt;

use josekit::jws::JwsSigner;
use memchr::memchr_iter;

use crate::{
    encoding,
    error::{JoseError, SigningError},
    header::Header,
};

/// Headers up to this size, in bytes, are decoded on the stack.
const STACK_HEADER_SIZE: usize = 1024;

/// A token in JWS compact serialization (RFC 7515 section 7.1) whose signature is not verified yet.
///
/// A value has exactly three segments and a valid [`Header`]. Header and payload are unpadded
/// base64url, without whitespace and with zero unused bits;
/// [`KeySet::verify`](crate::KeySet::verify) decodes the signature and verifies it. Before that,
/// the token proves nothing about its issuer.
pub struct CompactJws<'a> {
    header: Header,
    payload: Vec<u8>,
    signing_input: &'a [u8],
    signature: &'a [u8],
}

impl<'a> CompactJws<'a> {
    /// Parses a token of at most `max_len` bytes.
    ///
    /// # Errors
    /// Fails with [`JoseError::TooLarge`] if the token is longer than `max_len`, before it is
    /// parsed. Fails with another error if it is not a signed token with an acceptable header.
    pub fn parse(token: &'a str, max_len: usize) -> Result<Self, JoseError> {
        if token.len() > max_len {
            return Err(JoseError::TooLarge { limit: max_len });
        }
        let token = token.as_bytes();
        let mut dots = memchr_iter(b'.', token);
        let (Some(first), Some(second)) = (dots.next(), dots.next()) else {
            return Err(JoseError::Malformed);
        };
        match dots.count() {
            0 => {}
            2 => return Err(JoseError::Encrypted),
            _ => return Err(JoseError::Malformed),
        }
        let signing_input = &token[..second];
        let signature = &token[second + 1..];
        let header_segment = &signing_input[..first];
        let payload = &signing_input[first + 1..];
        if signature.is_empty() {
            return Err(JoseError::Malformed);
        }
        let header = parse_header(header_segment)?;
        let payload = encoding::decode(payload).ok_or(JoseError::Malformed)?;
        Ok(Self {
            header,
            payload,
            signing_input,
            signature,
        })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the decoded payload, which anyone may have written. Use it only to choose the keys
    /// that verify the token.
    pub fn unverified_payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns the JWS signing input: the header and payload segments, separated by a dot.
    pub(crate) fn signing_input(&self) -> &[u8] {
        self.signing_input
    }

    /// Returns the encoded signature.
    pub(crate) fn signature(&self) -> &[u8] {
        self.signature
    }
}

/// Decodes and parses a header, without an allocation for the decoded bytes of a header of the
/// common size.
fn parse_header(segment: &[u8]) -> Result<Header, JoseError> {
    let length = encoding::decoded_len(segment.len()).ok_or(JoseError::Malformed)?;
    if length <= STACK_HEADER_SIZE {
        let mut buffer = [0; STACK_HEADER_SIZE];
        Header::parse(encoding::decode_into(segment, &mut buffer).ok_or(JoseError::Malformed)?)
    } else {
        Header::parse(&encoding::decode(segment).ok_or(JoseError::Malformed)?)
    }
}

/// Signs a token and returns its compact serialization. Neither the header nor the payload is
/// checked. Fails if OpenSSL cannot sign.
pub(crate) fn sign(
    signer: &dyn JwsSigner,
    header: impl AsRef<[u8]>,
    payload: impl AsRef<[u8]>,
) -> Result<String, SigningError> {
    let mut token = String::new();
    encoding::encode_to(header, &mut token);
    token.push('.');
    encoding::encode_to(payload, &mut token);
    let signature = signer
        .sign(token.as_bytes())
        .map_err(|_| SigningError::Signature)?;
    token.push('.');
    encoding::encode_to(signature, &mut token);
    Ok(token)
}

/// Prints only the header.
impl fmt::Debug for CompactJws<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactJws")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}
