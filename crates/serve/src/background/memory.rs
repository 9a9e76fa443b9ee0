//! Returns freed memory to the operating system.

use std::time::Duration;

use super::periodic::every;

/// How often a thread returns memory.
const PERIOD: Duration = Duration::from_secs(5);

/// Calls the program's hook periodically on the calling thread, until the runtime ends. Without
/// this task, the memory of many closed streams stays with an idle thread, because allocators
/// return it only while the thread allocates.
pub(crate) async fn return_freed(hook: fn()) {
    every(PERIOD, hook).await
}
