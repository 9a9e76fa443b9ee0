use crate::end_reason::EndReason;

/// What of a session has ended. A greater extent includes a lesser one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndExtent {
    /// The identifiers of the generations below this one. The session continues.
    GenerationsBelow(u32),
    /// The whole session. The server ended it.
    ByServer,
    /// The whole session. Its owner ended it.
    ByOwner,
}

impl EndExtent {
    /// The highest generation that a session can have.
    pub(crate) const HIGHEST_GENERATION: u32 = Self::BY_SERVER - 1;

    /// Earlier versions read this as an end of all generations below it, which are all that exist.
    const BY_SERVER: u32 = u32::MAX - 1;
    /// Earlier versions write this for each end of a whole session.
    const BY_OWNER: u32 = u32::MAX;

    /// Returns the lowest generation that is still valid. Of two ends of a session, the one with
    /// the greater number applies.
    pub(crate) fn lowest_generation(self) -> u32 {
        match self {
            Self::GenerationsBelow(lowest) => lowest,
            Self::ByServer => Self::BY_SERVER,
            Self::ByOwner => Self::BY_OWNER,
        }
    }

    /// Returns the extent with this [lowest generation](Self::lowest_generation).
    pub(crate) fn of_lowest_generation(lowest: u32) -> Self {
        match lowest {
            Self::BY_SERVER => Self::ByServer,
            Self::BY_OWNER => Self::ByOwner,
            lowest => Self::GenerationsBelow(lowest),
        }
    }
}

impl From<EndReason> for EndExtent {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Deleted | EndReason::DeleteFailed => Self::ByOwner,
            _ => Self::ByServer,
        }
    }
}
