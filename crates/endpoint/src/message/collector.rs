//! The bounded collection of a request body.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body::Frame;
use portcullis_reason_codes::ReasonCodes;
use tokio::time::Instant;

use super::budget::{BodyBudget, BudgetShare, PrincipalShare, SMALL_BODY};

/// How often the rate of a large body is checked. A pause within it is limited by the server.
const RATE_PERIOD: Duration = Duration::from_secs(10);
/// The bytes of a large body that must arrive in a period: 8 KiB per second.
const MIN_BYTES_PER_PERIOD: usize = 80 << 10;

/// Collects a body, up to its own limit and the common budget.
pub(crate) struct Collector {
    max_size: usize,
    budget: Arc<BodyBudget>,
    share: BudgetShare,
    /// The key of the principal who sends the body.
    principal: u64,
    /// Set when the body has more than [`SMALL_BODY`] bytes.
    large: Option<Box<LargeBody>>,
    /// The first piece. Most bodies have only one, which is kept without a copy.
    first: Bytes,
    more: Vec<u8>,
}

/// The additional limits of a body that is no longer small.
struct LargeBody {
    share: PrincipalShare,
    /// When the current period began, and the bytes that have arrived since.
    period: Instant,
    arrived: usize,
}

/// The reason why a body could not be collected.
#[derive(Clone, Copy, Debug, ReasonCodes)]
pub(crate) enum BodyError {
    /// The body failed before its end.
    #[code = "body.broken"]
    Incomplete,
    /// The body exceeds its limit.
    #[code = "body.too_large"]
    TooLarge,
    /// The common budget is exhausted.
    #[code = "body.budget_spent"]
    BudgetExhausted,
    /// Other bodies of the principal use its part of the budget.
    #[code = "body.principal_budget"]
    PrincipalBudget,
    /// A large body arrives too slowly.
    #[code = "body.too_slow"]
    TooSlow,
}

impl Collector {
    /// Returns a collector for up to `max_size` bytes, which count against the budget and, if they
    /// are many, against the principal's part of it.
    pub(crate) fn new(max_size: usize, budget: &Arc<BodyBudget>, principal: u64) -> Self {
        Self {
            max_size,
            share: BudgetShare::empty(budget),
            budget: Arc::clone(budget),
            principal,
            large: None,
            first: Bytes::new(),
            more: Vec::new(),
        }
    }

    /// Adds the next frame. Trailers are discarded.
    pub(crate) fn add<E>(&mut self, frame: Result<Frame<Bytes>, E>) -> Result<(), BodyError> {
        let frame = frame.map_err(|_| BodyError::Incomplete)?;
        frame.into_data().map_or(Ok(()), |data| self.push(data))
    }

    fn push(&mut self, piece: Bytes) -> Result<(), BodyError> {
        if piece.len() > self.max_size - self.len() {
            return Err(BodyError::TooLarge);
        }
        if self.len() + piece.len() > SMALL_BODY {
            self.check_large(piece.len())?;
        }
        if !self.share.grow(piece.len()) {
            return Err(BodyError::BudgetExhausted);
        }
        if self.len() == 0 {
            self.first = piece;
            return Ok(());
        }
        if self.more.is_empty() {
            self.more
                .extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.more.extend_from_slice(&piece);
        Ok(())
    }

    /// Counts the next bytes of a large body for its principal, and checks how fast they arrive.
    fn check_large(&mut self, bytes: usize) -> Result<(), BodyError> {
        let held = self.len();
        let large = self.large.get_or_insert_with(|| {
            let share = PrincipalShare::empty(&self.budget, self.principal);
            Box::new(LargeBody {
                share,
                period: Instant::now(),
                arrived: 0,
            })
        });
        let counted = if large.share.is_empty() {
            held + bytes
        } else {
            bytes
        };
        if !large.share.grow(counted) {
            return Err(BodyError::PrincipalBudget);
        }
        large.arrived += bytes;
        let now = Instant::now();
        if now.saturating_duration_since(large.period) >= RATE_PERIOD {
            if large.arrived < MIN_BYTES_PER_PERIOD {
                return Err(BodyError::TooSlow);
            }
            (large.period, large.arrived) = (now, 0);
        }
        Ok(())
    }

    /// Returns the whole body. The body and its clones hold their share of the budget.
    pub(crate) fn finish(self) -> Bytes {
        let Self {
            share,
            large,
            first,
            more,
            ..
        } = self;
        let large = large.map(|large| large.share);
        let bytes = if more.is_empty() {
            first
        } else {
            Bytes::from(more)
        };
        if bytes.is_empty() {
            bytes
        } else {
            Bytes::from_owner(BudgetedBytes {
                bytes,
                _share: share,
                _large: large,
            })
        }
    }

    fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }
}

struct BudgetedBytes {
    bytes: Bytes,
    _share: BudgetShare,
    _large: Option<PrincipalShare>,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(
        max: usize,
        budget: &Arc<BodyBudget>,
        pieces: &[&'static str],
    ) -> Result<Bytes, &'static str> {
        let mut collector = Collector::new(max, budget, 1);
        for piece in pieces {
            collector
                .push(Bytes::from_static(piece.as_bytes()))
                .map_err(|error| error.code())?;
        }
        Ok(collector.finish())
    }

    #[test]
    fn pieces_become_one_body() {
        let budget = BodyBudget::new(100);
        for (pieces, whole) in [
            (&[][..], ""),
            (&["", ""], ""),
            (&["abc"], "abc"),
            (&["", "ab", "", "c", "def"], "abcdef"),
        ] {
            assert_eq!(collect(6, &budget, pieces).unwrap(), whole);
        }
        assert_eq!(collect(5, &budget, &["abc", "def"]), Err("body.too_large"));
        assert_eq!(budget.available(), 100);
    }

    /// F4: a body counts until its last clone is dropped.
    #[test]
    fn a_body_holds_its_share_as_long_as_any_clone_lives() {
        let budget = BodyBudget::new(10);
        let body = collect(10, &budget, &["abc", "def"]).unwrap();
        let part = body.slice(2..3);
        drop(body);
        assert_eq!(budget.available(), 4);
        assert_eq!(collect(10, &budget, &["12345"]), Err("body.budget_spent"));
        drop(part);
        assert_eq!(budget.available(), 10);
    }

    /// F4: a large body must arrive at a minimum rate; a small one need not.
    #[tokio::test(start_paused = true)]
    async fn a_large_body_has_a_minimum_rate() {
        const PIECE: &[u8] = &[b'x'; 8 << 10];
        for (pieces, is_large) in [(8, false), (9, true)] {
            let budget = BodyBudget::new(10 << 20);
            let mut collector = Collector::new(4 << 20, &budget, 1);
            for _ in 0..pieces {
                collector.push(Bytes::from_static(PIECE)).unwrap();
                tokio::time::advance(RATE_PERIOD / 10).await;
            }
            tokio::time::advance(RATE_PERIOD).await;
            let next = collector.push(Bytes::from_static(if is_large { b"x" } else { b"" }));
            assert_eq!(
                next.map_err(|error| error.code()),
                if is_large {
                    Err("body.too_slow")
                } else {
                    Ok(())
                }
            );
        }
        let budget = BodyBudget::new(10 << 20);
        let mut collector = Collector::new(4 << 20, &budget, 1);
        for _ in 0..100 {
            collector.push(Bytes::from_static(PIECE)).unwrap();
            tokio::time::advance(Duration::from_millis(900)).await;
        }
    }
}
