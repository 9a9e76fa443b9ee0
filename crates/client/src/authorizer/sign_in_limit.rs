//! [`SignInLimit`]: bounds the sign-ins that a server can cause.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::ClientError;

/// The sign-ins that involved the user and led to no accepted request yet.
#[derive(Debug, Default)]
pub(crate) struct SignInLimit(Mutex<VecDeque<Instant>>);

/// The maximum number of sign-ins within [`PERIOD`].
const MAX_SIGN_INS: usize = 3;
const PERIOD: Duration = Duration::from_secs(10 * 60);

impl SignInLimit {
    /// Records a sign-in, before the user is involved. Fails with [`ClientError::TooManySignIns`]
    /// when there were [`MAX_SIGN_INS`] within [`PERIOD`].
    pub(super) fn record(&self) -> Result<(), ClientError> {
        let mut sign_ins = self.0.lock();
        let now = Instant::now();
        sign_ins.retain(|earlier| now.duration_since(*earlier) < PERIOD);
        if sign_ins.len() >= MAX_SIGN_INS {
            return Err(ClientError::TooManySignIns);
        }
        sign_ins.push_back(now);
        Ok(())
    }

    /// Forgets all sign-ins: one of them led to an accepted request, or the caller wants another
    /// one.
    pub(crate) fn reset(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// I7: after three sign-ins, there is no further one for 10 min after the first, or until a
    /// reset.
    #[tokio::test(start_paused = true)]
    async fn sign_ins_are_limited() {
        let limit = SignInLimit::default();
        for _ in 0..MAX_SIGN_INS {
            limit.record().unwrap();
            advance(Duration::from_secs(60)).await;
        }
        assert_eq!(
            limit.record().unwrap_err().code(),
            "client.too_many_sign_ins"
        );
        advance(PERIOD - Duration::from_secs(180)).await;
        limit.record().unwrap();
        assert!(limit.record().is_err());
        limit.reset();
        limit.record().unwrap();
    }
}
