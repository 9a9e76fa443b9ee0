use std::{borrow::Cow, fmt};

use memchr::memchr_iter;

use crate::{Header, JoseError, encoding};

/// Headers up to this size are decoded on the stack.
const SMALL_HEADER: usize = 1024;

/// A token in JWS compact serialization (RFC 7515 section 7.1), taken apart and not verified.
///
/// Strict where the format leaves room for attacks: exactly three segments, unpadded base64url with zero
/// unused bits and no whitespace, a [`Header`] that was judged. Nothing here says who made it: hand it to
/// [`KeySet::verify`](crate::KeySet::verify).
pub struct Compact<'a> {
    header: Cow<'a, Header>,
    header_segment: &'a [u8],
    payload: Vec<u8>,
    signed: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Compact<'a> {
    /// Takes a token of at most `max_len` bytes apart.
    ///
    /// # Errors
    /// [`JoseError::TooLarge`] before anything is read; then for whatever is no signed token with an acceptable header.
    pub fn parse(token: &'a str, max_len: usize) -> Result<Self, JoseError> {
        Self::parse_knowing(token, max_len, None)
    }

    /// The same. A token whose header's text is that of the known one gets that header, and it is not read again.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_knowing(token: &'a str, max_len: usize, known: Option<&'a KnownHeader>) -> Result<Self, JoseError> {
        if token.len() > max_len {
            return Err(JoseError::TooLarge { limit: max_len });
        }
        let token = token.as_bytes();
        let mut dots = memchr_iter(b'.', token);
        let (Some(first), Some(second)) = (dots.next(), dots.next()) else { return Err(JoseError::Malformed) };
        match dots.count() {
            0 => {}
            2 => return Err(JoseError::Encrypted),
            _ => return Err(JoseError::Malformed),
        }
        let (signed, signature) = (&token[..second], &token[second + 1..]);
        let (header_segment, payload) = (&signed[..first], &signed[first + 1..]);
        if signature.is_empty() {
            return Err(JoseError::Malformed);
        }
        let header = match known {
            Some(known) if *known.segment == *header_segment => Cow::Borrowed(&known.header),
            _ => Cow::Owned(parse_header(header_segment)?),
        };
        let payload = encoding::decode(payload).ok_or(JoseError::Malformed)?;
        Ok(Self { header, header_segment, payload, signed, signature })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The payload as anybody may have written it: good for choosing whose keys to ask, for nothing else.
    pub fn unverified_payload(&self) -> &[u8] {
        &self.payload
    }

    /// The same payload, to keep.
    pub fn into_unverified_payload(self) -> Vec<u8> {
        self.payload
    }

    /// The text that was signed: header and payload segments with the dot between them.
    pub(crate) fn signed(&self) -> &[u8] {
        self.signed
    }

    /// The signature's segment, not decoded.
    pub(crate) fn signature(&self) -> &[u8] {
        self.signature
    }
}

/// A header that was read, and its text in the token: an issuer writes the same one into all tokens that it signs with
/// one key. What it says depends on that text alone, so that reading it once is enough.
pub struct KnownHeader {
    segment: Box<[u8]>,
    header: Header,
}

impl KnownHeader {
    /// The header of a token.
    pub fn of(token: &Compact<'_>) -> Self {
        Self { segment: token.header_segment.into(), header: token.header().clone() }
    }

    /// Whether the token has this header.
    pub fn is_that_of(&self, token: &str) -> bool {
        token.as_bytes().strip_prefix(&*self.segment).is_some_and(|rest| rest.first() == Some(&b'.'))
    }
}

/// Shows the header as it was read.
impl fmt::Debug for KnownHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownHeader").field(&self.header).finish()
    }
}

fn parse_header(segment: &[u8]) -> Result<Header, JoseError> {
    let length = encoding::decoded_len(segment.len()).ok_or(JoseError::Malformed)?;
    if length <= SMALL_HEADER {
        let mut buffer = [0; SMALL_HEADER];
        Header::parse(encoding::decode_into(segment, &mut buffer).ok_or(JoseError::Malformed)?)
    } else {
        Header::parse(&encoding::decode(segment).ok_or(JoseError::Malformed)?)
    }
}

/// Shows the header alone.
impl fmt::Debug for Compact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compact").field("header", &self.header).finish_non_exhaustive()
    }
}
