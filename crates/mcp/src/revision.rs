use std::fmt;

/// A revision of the Model Context Protocol. Revisions are ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2025-03-26: sessions that begin with `initialize`. The revision does not define
    /// `MCP-Protocol-Version`. Its JSON-RPC batches are not supported.
    V2025_03_26,
    /// 2025-06-18: sessions that begin with `initialize`.
    V2025_06_18,
    /// 2025-11-25: sessions that begin with `initialize`.
    V2025_11_25,
    /// 2026-07-28: no sessions. Every request contains its version and capabilities.
    V2026_07_28,
}

impl Revision {
    const NEWEST_FIRST: [Self; 4] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
    ];

    /// Returns the date as in messages and headers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision with exactly this date, if it is known.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NEWEST_FIRST
            .into_iter()
            .find(|revision| revision.as_str() == text)
    }

    /// Returns whether the revision is modern: it has no sessions, and each request contains its
    /// version and capabilities.
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of revisions, such as those that an endpoint serves. The default is all revisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revisions(u8);

impl Revisions {
    /// All revisions that this crate knows.
    pub const ALL: Self = Self(
        Revision::V2025_03_26.bit()
            | Revision::V2025_06_18.bit()
            | Revision::V2025_11_25.bit()
            | Revision::V2026_07_28.bit(),
    );

    /// Returns whether the set contains this revision.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & revision.bit() != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the revisions, newest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::NEWEST_FIRST
            .into_iter()
            .filter(move |revision| self.contains(*revision))
    }

    /// Returns whether the set contains a legacy revision.
    pub fn has_legacy(self) -> bool {
        self.iter().any(|revision| !revision.is_modern())
    }
}

impl Default for Revisions {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<Revision> for Revisions {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        Self(
            revisions
                .into_iter()
                .fold(0, |bits, revision| bits | revision.bit()),
        )
    }
}

/// Writes the dates, newest first, separated by commas.
impl fmt::Display for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter()
            .enumerate()
            .try_for_each(|(position, revision)| {
                let separator = if position > 0 { ", " } else { "" };
                write!(f, "{separator}{revision}")
            })
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(Revision::as_str))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_round_trip() {
        for revision in Revisions::ALL.iter() {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(Revisions::ALL.iter().count(), Revision::NEWEST_FIRST.len());
        for other in ["", "2024-11-05", "2026-07-28 ", "v2026-07-28", "2026-7-28"] {
            assert_eq!(Revision::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_set_is_ordered_newest_first() {
        let set = Revisions::from_iter([Revision::V2025_06_18, Revision::V2026_07_28]);
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Revision::V2026_07_28, Revision::V2025_06_18]
        );
        assert!(set.has_legacy());
        assert!(!set.contains(Revision::V2025_11_25));
        assert!(!Revisions::from_iter([Revision::V2026_07_28]).has_legacy());
        let legacy = Revisions::from_iter([Revision::V2025_11_25, Revision::V2025_11_25]);
        assert!(
            legacy.has_legacy(),
            "a repeated revision is in the set once"
        );
        assert_eq!(
            legacy.iter().count(),
            1,
            "a repeated revision is in the set once"
        );
        assert!(Revisions::from_iter([]).is_empty());
        assert!(!Revisions::ALL.is_empty());
    }

    #[test]
    fn revisions_are_printed_as_dates() {
        assert_eq!(Revision::V2025_11_25.to_string(), "2025-11-25");
        let set = Revisions::from_iter([Revision::V2025_06_18, Revision::V2026_07_28]);
        assert_eq!(set.to_string(), "2026-07-28, 2025-06-18");
        assert_eq!(format!("{set:?}"), r#"{"2026-07-28", "2025-06-18"}"#);
    }
}
