use std::io;

use tokio::runtime::{Builder, Runtime};

/// Returns a runtime on the current thread, for everything except the requests of `serve`.
pub(crate) fn control_runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
