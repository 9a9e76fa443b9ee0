//! [`folded`]: names that people confuse.

/// Returns a URL or a path without letter case and slashes at its end. Equal results are
/// names that people confuse; requests and tokens are compared exactly.
pub(super) fn folded(name: &str) -> String {
    name.trim_end_matches('/').to_ascii_lowercase()
}
