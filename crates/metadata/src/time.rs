//! Clocks, points in time, and JSON numeric dates.

mod clock;
pub(crate) mod numeric_date;

pub use clock::{Clock, Now, SystemClock, UnixTime};
