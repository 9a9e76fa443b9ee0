//! [`RequestId`]: the correlation id of a request.

use std::{
    cell::Cell,
    fmt,
    hash::{BuildHasher, RandomState},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

/// The header with the request id, on the request to the inner service and on every response.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The correlation id of one request: a version 4 UUID (RFC 9562 section 5.4) in lower case.
///
/// The guard generates it for every request and ignores an id from the client. It is not a secret
/// and must not authorize anything. Cloning is cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The header with the request id.
    pub const HEADER: HeaderName = X_REQUEST_ID;

    /// Generates an id. Servers call it for responses that do not pass a guard.
    pub fn generate() -> Self {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        uuid::Builder::from_random_bytes(random_bytes())
            .into_uuid()
            .hyphenated()
            .encode_lower(&mut text);
        // The headers of the request and the response share this allocation.
        let shared = Bytes::from_owner(text);
        Self(HeaderValue::from_maybe_shared(shared).unwrap_or(HeaderValue::from_static("")))
    }

    /// Returns the id as a string of 36 characters.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// Returns the 128 bits of the id.
    pub(crate) fn bytes(&self) -> [u8; 16] {
        uuid::Uuid::try_parse_ascii(self.0.as_bytes())
            .unwrap_or_default()
            .into_bytes()
    }

    /// Returns the id as a header value, without copying it.
    pub fn to_header_value(&self) -> HeaderValue {
        self.0.clone()
    }
}

/// Generates 128 bits with two SplitMix64 generators of this thread. The operating system seeds
/// them once, because a system call per request would cost more than the rest of the guard.
fn random_bytes() -> [u8; 16] {
    thread_local! {
        static COUNTERS: Cell<[u64; 2]> = Cell::new([0, 1].map(|half: u64| RandomState::new().hash_one(half)));
    }
    let [high, low] = COUNTERS
        .with(|counters| counters.replace(counters.get().map(|count| count.wrapping_add(STEP))));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mix(high).to_ne_bytes());
    bytes[8..].copy_from_slice(&mix(low).to_ne_bytes());
    bytes
}

/// The increment of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the output function of SplitMix64. It is a bijection, so the ids of a thread do not
/// repeat.
fn mix(count: u64) -> u64 {
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

    /// J1: the generator is SplitMix64, whose outputs do not repeat.
    #[test]
    fn outputs_are_those_of_splitmix64() {
        let counts = [1, 2, 3].map(|times| mix(STEP.wrapping_mul(times)));
        assert_eq!(
            counts,
            [
                0xe220_a839_7b1d_cdaf,
                0x6e78_9e6a_a1b9_65f4,
                0x06c4_5d18_8009_454f
            ]
        );
    }

    /// J1: ids are version 4 UUIDs and do not repeat, on one thread or across threads.
    #[test]
    fn ids_are_fresh_version_4_uuids() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| (0..1000).map(|_| RequestId::generate()).collect::<Vec<_>>())
            })
            .collect();
        let ids: Vec<_> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        let distinct: HashSet<&str> = ids.iter().map(RequestId::as_str).collect();
        assert_eq!(distinct.len(), 4000);

        for id in &ids {
            let parsed = uuid::Uuid::try_parse(id.as_str()).unwrap();
            assert_eq!(parsed.get_version_num(), 4);
            assert_eq!(id.as_str().len(), 36);
            assert_eq!(id.to_header_value().as_bytes(), id.as_str().as_bytes());
            assert_eq!(id.to_string(), id.as_str());
            assert_eq!(format!("{id:?}"), format!("RequestId({:?})", id.as_str()));
        }
    }
}
