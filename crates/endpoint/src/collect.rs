use std::sync::Arc;

use bytes::Bytes;
use http_body::Frame;

use crate::{BodyBudget, budget::Share, respond::Refusal};

/// A body on its way in, bounded by its own limit and by the common budget.
pub(crate) struct Collector {
    max: usize,
    share: Share,
    /// Most bodies come in one piece, which is kept as it is.
    first: Bytes,
    more: Vec<u8>,
}

impl Collector {
    pub(crate) fn new(max: usize, budget: &Arc<BodyBudget>) -> Self {
        Self { max, share: Share::empty(budget), first: Bytes::new(), more: Vec::new() }
    }

    /// Adds what came in next. Trailers are thrown away.
    pub(crate) fn add<E>(&mut self, frame: Result<Frame<Bytes>, E>) -> Result<(), Refusal> {
        let frame = frame.map_err(|_| Refusal::BodyBroken)?;
        frame.into_data().map_or(Ok(()), |data| self.push(data))
    }

    fn push(&mut self, piece: Bytes) -> Result<(), Refusal> {
        if piece.len() > self.max - self.len() {
            return Err(Refusal::TooLarge);
        }
        if !self.share.grow(piece.len()) {
            return Err(Refusal::BudgetSpent);
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

    /// The whole body; it and its clones hold their share of the budget.
    pub(crate) fn finish(self) -> Bytes {
        let Self { share, first, more, .. } = self;
        let bytes = if more.is_empty() { first } else { Bytes::from(more) };
        if bytes.is_empty() { bytes } else { Bytes::from_owner(Counted { bytes, _share: share }) }
    }

    fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }
}

struct Counted {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Counted {
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
            collector.push(Bytes::from_static(piece.as_bytes())).map_err(|refusal| refusal.code())?;
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

    /// F4: a body counts until its last clone is gone.
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
