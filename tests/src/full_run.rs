/// Returns whether long scenarios do everything: whether `PORTCULLIS_TEST_FULL` is set. Otherwise
/// they do a part, in seconds.
pub fn is_full_run() -> bool {
    std::env::var_os("PORTCULLIS_TEST_FULL").is_some()
}
