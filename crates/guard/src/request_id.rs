use std::{
    cell::Cell,
    fmt,
    hash::{BuildHasher, RandomState},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

/// The header that carries the correlation id, on the request handed on and on every answer.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The correlation id of one request: a version 4 UUID (RFC 9562 section 5.4) as lower-case text.
///
/// Made by the guard for every request, never taken from the client. It tells log lines apart and is no
/// secret: nothing may be authorized by it. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The header that carries it.
    pub const HEADER: HeaderName = X_REQUEST_ID;

    /// A fresh id from this thread's generator, for answers that a server gives without a guard.
    pub fn generate() -> Self {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        uuid::Builder::from_random_bytes(random_bytes()).into_uuid().hyphenated().encode_lower(&mut text);
        // One allocation, shared by the request's header, the answer's and this value.
        let shared = Bytes::from_owner(text);
        Self(HeaderValue::from_maybe_shared(shared).unwrap_or(HeaderValue::from_static("")))
    }

    /// The id's text, 36 characters.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// The id as a header value; shares the text.
    pub fn to_header_value(&self) -> HeaderValue {
        self.0.clone()
    }
}

/// 128 bits from two counters, scattered. Where they begin is this thread's, drawn from the operating system once; a
/// call to the system for each request would cost more than all else the guard does.
fn random_bytes() -> [u8; 16] {
    thread_local! {
        static COUNTERS: Cell<[u64; 2]> = Cell::new([0, 1].map(|half: u64| RandomState::new().hash_one(half)));
    }
    let [high, low] = COUNTERS.with(|counters| counters.replace(counters.get().map(|count| count.wrapping_add(STEP))));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&scatter(high).to_ne_bytes());
    bytes[8..].copy_from_slice(&scatter(low).to_ne_bytes());
    bytes
}

/// The increment of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64: one to one, so that ids of a thread do not repeat.
fn scatter(count: u64) -> u64 {
    let mixed = (count ^ (count >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestId").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// J1: the scattering is that of SplitMix64, which gives no number twice.
    #[test]
    fn numbers_are_scattered_as_published() {
        let counts = [1, 2, 3].map(|times| scatter(STEP.wrapping_mul(times)));
        assert_eq!(counts, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }

    /// J1: ids are version 4 UUIDs and do not repeat, on one thread or across threads.
    #[test]
    fn ids_are_fresh_version_4_uuids() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..1000).map(|_| RequestId::generate()).collect::<Vec<_>>()))
            .collect();
        let ids: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let distinct: HashSet<&str> = ids.iter().map(RequestId::as_str).collect();
        assert_eq!(distinct.len(), 4000);
        for id in &ids {
            let parsed = uuid::Uuid::try_parse(id.as_str()).unwrap();
            assert_eq!((parsed.get_version_num(), id.as_str().len()), (4, 36));
            assert_eq!(id.to_header_value().as_bytes(), id.as_str().as_bytes());
            assert_eq!(id.to_string(), id.as_str());
            assert_eq!(format!("{id:?}"), format!("RequestId({:?})", id.as_str()));
        }
    }
}
