//! The bounded collection of a request body.

use std::sync::Arc;

use bytes::Bytes;
use http_body::Frame;

use super::budget::{BodyBudget, BudgetShare};

/// Collects a body, up to its own limit and the common budget.
pub(crate) struct Collector {
    max_size: usize,
    share: BudgetShare,
    /// The first piece. Most bodies have only one, which is kept without a copy.
    first: Bytes,
    more: Vec<u8>,
}

/// The reason why a body could not be collected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyError {
    /// The body failed before its end.
    Incomplete,
    /// The body exceeds its limit.
    TooLarge,
    /// The common budget is exhausted.
    BudgetExhausted,
}

impl BodyError {
    /// Returns the stable reason code.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Incomplete => "body.broken",
            Self::TooLarge => "body.too_large",
            Self::BudgetExhausted => "body.budget_spent",
        }
    }
}

impl Collector {
    /// Returns a collector for up to `max_size` bytes, which count against the budget.
    pub(crate) fn new(max_size: usize, budget: &Arc<BodyBudget>) -> Self {
        Self { max_size, share: BudgetShare::empty(budget), first: Bytes::new(), more: Vec::new() }
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
        if !self.share.grow(piece.len()) {
            return Err(BodyError::BudgetExhausted);
        }
        if self.len() == 0 {
            self.first = piece;
            return Ok(());
        }
        if self.more.is_empty() {
            self.more.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.more.extend_from_slice(&piece);
        Ok(())
    }

    /// Returns the whole body. The body and its clones hold their share of the budget.
    pub(crate) fn finish(self) -> Bytes {
        let Self { share, first, more, .. } = self;
        let bytes = if more.is_empty() { first } else { Bytes::from(more) };
        if bytes.is_empty() { bytes } else { Bytes::from_owner(BudgetedBytes { bytes, _share: share }) }
    }

    fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }
}

struct BudgetedBytes {
    bytes: Bytes,
    _share: BudgetShare,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(max: usize, budget: &Arc<BodyBudget>, pieces: &[&'static str]) -> Result<Bytes, &'static str> {
        let mut collector = Collector::new(max, budget);
        for piece in pieces {
            collector.push(Bytes::from_static(piece.as_bytes())).map_err(BodyError::code)?;
        }
        Ok(collector.finish())
    }

    #[test]
    fn pieces_become_one_body() {
        let budget = BodyBudget::new(100);
        for (pieces, whole) in
            [(&[][..], ""), (&["", ""], ""), (&["abc"], "abc"), (&["", "ab", "", "c", "def"], "abcdef")]
        {
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
}
