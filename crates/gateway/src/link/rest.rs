use bytes::{Bytes, BytesMut};

use super::{chunked::Chunked, framing::Framing, malformed::Malformed};

/// What is still to come of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Nothing,
}

impl Rest {
    /// The next piece of the body that is there.
    pub(crate) fn take(&mut self, inbox: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
        match self {
            Self::Chunked(chunked) => {
                let data = chunked.take(inbox);
                if *chunked == Chunked::Over {
                    *self = Self::Nothing;
                }
                data
            }
            Self::Nothing => Ok(None),
            _ if inbox.is_empty() => Ok(None),
            Self::UntilClose => Ok(Some(inbox.split().freeze())),
            Self::Length(length) => {
                let data = inbox.split_to(usize::try_from(*length).unwrap_or(usize::MAX).min(inbox.len())).freeze();
                *self = Self::from(Framing::Length(*length - data.len() as u64));
                Ok(Some(data))
            }
        }
    }

    /// The connection has come to its end.
    pub(crate) fn close(&mut self) -> Result<(), Malformed> {
        match std::mem::replace(self, Self::Nothing) {
            Self::UntilClose | Self::Nothing => Ok(()),
            Self::Length(_) | Self::Chunked(_) => Err(Malformed::BrokenOff),
        }
    }

    pub(crate) fn is_nothing(self) -> bool {
        self == Self::Nothing
    }

    /// The length of what is to come, where it is known.
    pub(crate) fn length(self) -> Option<u64> {
        match self {
            Self::Nothing => Some(0),
            Self::Length(length) => Some(length),
            Self::Chunked(_) | Self::UntilClose => None,
        }
    }
}

impl From<Framing> for Rest {
    fn from(framing: Framing) -> Self {
        match framing {
            Framing::Length(0) => Self::Nothing,
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Chunked::Size),
            Framing::UntilClose => Self::UntilClose,
        }
    }
}
