//! What the tests of this crate share.

use std::sync::Arc;

use portcullis_metadata::UnixTime;

pub(crate) use portcullis_client::ScriptedUser;
pub(crate) use portcullis_testkit::{
    FetchFn, ManualClock, Reply, ScratchDirectory, form,
    protected_resource::{REGISTRATION_URL, RESOURCE, TOKEN_URL, well_behaved},
};

/// Returns a clock at 1,000 s.
pub(crate) fn clock() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.set_unix(UnixTime::from_secs(1_000));
    Arc::new(clock)
}
