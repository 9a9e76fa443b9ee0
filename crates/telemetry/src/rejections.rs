//! [`Rejections`]: equal rejections, of which a log lists the first ones and counts the others.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_guard::Decision;
use portcullis_metadata::UnixTime;

use crate::Effect;

/// The period after which counts are taken.
const PERIOD: Duration = Duration::from_secs(1);
/// The number of pairs of reason and address that are counted separately.
const MAX_SOURCES: usize = 1024;

/// Counts equal rejections, so that a flood of them does not fill a log: those with the same reason
/// code from the same client address. In each second, the first [`LISTED`](Self::LISTED) of them
/// are listed, each with a line of its own. The others are counted, and the counts are taken once a
/// second. While a flood continues, all are counted.
///
/// Only rejections without a principal are counted: each request of an authenticated caller is
/// listed, and so is each admitted one, which costs nothing here.
///
/// An IPv6 address counts by its first 64 bits. The table has at most 1024 pairs of reason and
/// address. When it is full, further addresses share a count for each reason.
#[derive(Debug, Default)]
pub struct Rejections(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    counts: HashMap<Key, Count>,
    /// When the counts were last taken.
    taken: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    code: &'static str,
    source: RejectionSource,
}

/// Where equal rejections come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectionSource {
    /// An IPv4 address.
    Address(IpAddr),
    /// The first 64 bits of an IPv6 address.
    Network(Ipv6Addr),
    /// Requests whose address is not known.
    Unknown,
    /// Addresses that have no count of their own.
    Others,
}

#[derive(Debug)]
struct Count {
    listed: u32,
    summed: u64,
    first: UnixTime,
    last: UnixTime,
}

/// A number of equal rejections that are not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummedRejections {
    /// Their reason code.
    pub code: &'static str,
    /// Where they come from.
    pub source: RejectionSource,
    /// Their number, at least one.
    pub count: u64,
    /// The arrival of the first one.
    pub first: UnixTime,
    /// The arrival of the last one.
    pub last: UnixTime,
}

impl Rejections {
    /// The number of equal rejections in a second that are listed.
    pub const LISTED: u32 = 10;

    /// Returns whether a decision must be listed, and counts it if not. See
    /// [`lists`](Self::lists).
    pub fn lists_decision(&self, decision: &Decision<'_>) -> bool {
        self.lists(
            decision.code,
            decision.principal.is_some(),
            decision.client_address,
            decision.time,
        )
    }

    /// Returns whether a request must be listed, and counts it if not. `code` is its reason code,
    /// if it was rejected or failed; `has_principal` tells whether its token was valid.
    pub fn lists(
        &self,
        code: Option<&'static str>,
        has_principal: bool,
        address: Option<IpAddr>,
        time: UnixTime,
    ) -> bool {
        match code {
            Some(code) if !has_principal && Effect::of(Some(code)) == Effect::Deny => {
                self.count(code, address, time)
            }
            _ => true,
        }
    }

    /// Counts a rejection of a request without a principal. Returns whether it must be listed.
    fn count(&self, code: &'static str, address: Option<IpAddr>, time: UnixTime) -> bool {
        let table = &mut *self.0.lock();
        let mut key = Key {
            code,
            source: RejectionSource::of(address),
        };
        if table.counts.len() >= MAX_SOURCES && !table.counts.contains_key(&key) {
            key.source = RejectionSource::Others;
        }
        let count = table.counts.entry(key).or_insert(Count {
            listed: 0,
            summed: 0,
            first: time,
            last: time,
        });
        if count.listed < Self::LISTED {
            count.listed += 1;
            return true;
        }
        if count.summed == 0 {
            count.first = time;
        }
        count.summed += 1;
        count.last = time;
        false
    }

    /// Takes the counts if a second has passed since they were last taken. `now` is a monotonic
    /// time.
    pub fn take_due(&self, now: Duration) -> Vec<SummedRejections> {
        let table = &mut *self.0.lock();
        if now.saturating_sub(table.taken) < PERIOD {
            return Vec::new();
        }
        table.taken = now;
        table.take()
    }

    /// Takes all counts, at the end of the log.
    pub fn take(&self) -> Vec<SummedRejections> {
        self.0.lock().take()
    }
}

impl Table {
    /// Empties the table, except for floods that continue: their rejections are counted at once.
    fn take(&mut self) -> Vec<SummedRejections> {
        let mut taken = Vec::new();
        self.counts.retain(|key, count| {
            let summed = std::mem::take(&mut count.summed);
            if summed > 0 {
                taken.push(SummedRejections {
                    code: key.code,
                    source: key.source,
                    count: summed,
                    first: count.first,
                    last: count.last,
                });
            }
            summed >= u64::from(Rejections::LISTED)
        });
        taken
    }
}

impl RejectionSource {
    fn of(address: Option<IpAddr>) -> Self {
        match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V6(address)) => Self::Network(Ipv6Addr::from_bits(
                address.to_bits() & !u128::from(u64::MAX),
            )),
            Some(address) => Self::Address(address),
            None => Self::Unknown,
        }
    }
}

/// An address, a network in the notation of prefixes (RFC 4291 section 2.3), `unknown` or `others`.
impl fmt::Display for RejectionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Network(network) => write!(f, "{network}/64"),
            Self::Unknown => f.write_str("unknown"),
            Self::Others => f.write_str("others"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "token.malformed";

    fn address(last: u32) -> Option<IpAddr> {
        Some(std::net::Ipv4Addr::from_bits(0x0a00_0000 + last).into())
    }

    fn at(secs: u64) -> UnixTime {
        UnixTime::from_secs(1_800_000_000 + secs)
    }

    /// Counts this many equal rejections, and returns how many are listed.
    fn listed(rejections: &Rejections, number: u32, address: Option<IpAddr>, secs: u64) -> usize {
        (0..number)
            .filter(|_| rejections.count(CODE, address, at(secs)))
            .count()
    }

    /// J1, J4: the first equal rejections are listed, and the others are counted.
    #[test]
    fn equal_rejections_are_summed() {
        let rejections = Rejections::default();
        assert_eq!(listed(&rejections, 10, address(1), 0), 10);
        assert_eq!(listed(&rejections, 90, address(1), 1), 0);
        assert_eq!(listed(&rejections, 10, address(2), 1), 10);
        assert!(rejections.count("token.missing", address(1), at(1)));
        assert_eq!(rejections.take_due(Duration::from_millis(999)), []);
        let summed = SummedRejections {
            code: CODE,
            source: RejectionSource::Address(address(1).unwrap()),
            count: 90,
            first: at(1),
            last: at(1),
        };
        assert_eq!(rejections.take_due(PERIOD), std::slice::from_ref(&summed));

        // While the flood continues, none is listed. When it ends, each is listed again.
        assert_eq!(listed(&rejections, 9, address(1), 2), 0);
        let second = SummedRejections {
            count: 9,
            first: at(2),
            last: at(2),
            ..summed
        };
        assert_eq!(rejections.take_due(PERIOD * 2), [second]);
        assert_eq!(listed(&rejections, 1, address(1), 3), 1);
        assert_eq!(rejections.take(), []);
    }

    /// F4, J4: many addresses do not use more memory, and each rejection is listed or counted.
    #[test]
    fn the_table_is_bounded() {
        let rejections = Rejections::default();
        let addresses = 5 * u32::try_from(MAX_SOURCES).unwrap();
        let mut listed = 0;
        for last in 0..addresses {
            listed += u64::from(rejections.count(CODE, address(last), at(0)));
        }
        assert!(rejections.0.lock().counts.len() <= MAX_SOURCES + 1);
        let taken = rejections.take();
        assert_eq!(taken.len(), 1, "{taken:?}");
        assert_eq!(taken[0].source, RejectionSource::Others);
        assert_eq!(listed + taken[0].count, u64::from(addresses));
    }

    /// The addresses of an IPv6 network count as one, which one client can use.
    #[test]
    fn networks_count_together() {
        let rejections = Rejections::default();
        for last in 0..20_u16 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, last);
            rejections.count(CODE, Some(address.into()), at(0));
        }
        let taken = rejections.take();
        assert_eq!(taken[0].count, 10);
        assert_eq!(taken[0].source.to_string(), "2001:db8:1:2::/64");
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        let source = RejectionSource::of(Some(mapped)).to_string();
        assert_eq!(source, "192.0.2.1");
        assert_eq!(RejectionSource::of(None).to_string(), "unknown");
    }
}
