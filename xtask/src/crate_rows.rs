//! The crates that are published, in the rows of the architecture.

/// The rows, lowest first. A crate can use crates of the rows before its own.
pub const ROWS: &[&[&str]] = &[
    &["portcullis-reason-codes"],
    &[
        "portcullis-metadata",
        "portcullis-mcp",
        "portcullis-allocator",
    ],
    &[
        "portcullis-jose",
        "portcullis-discovery",
        "portcullis-session",
        "portcullis-http1",
        "portcullis-files",
    ],
    &[
        "portcullis-verifier",
        "portcullis-client",
        "portcullis-authorization-server",
        "portcullis-state-store",
        "portcullis-testkit",
    ],
    &[
        "portcullis-devidp",
        "portcullis-guard",
        "portcullis-mcp-client",
        "portcullis-identity-provider",
    ],
    &[
        "portcullis-endpoint",
        "portcullis-telemetry",
        "portcullis-bridge",
        "portcullis-broker",
    ],
    &[
        "portcullis-gateway",
        "portcullis-doctor",
        "portcullis-audit",
    ],
    &["portcullis-config"],
    &["portcullis-serve", "portcullis-terminal"],
    &["portcullis-client-commands", "portcullis-operator-commands"],
    &["portcullis"],
];

/// The crate of the program.
const PROGRAM: &str = "portcullis";

/// Returns the crates in the rows, lowest first.
pub fn crates() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|row| row.iter().copied())
}

/// Returns the crates in the rows that are libraries: all but the program.
pub fn libraries() -> impl Iterator<Item = &'static str> {
    crates().filter(|name| *name != PROGRAM)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workspace;

    /// The rows have every crate that is published, once.
    #[test]
    fn the_rows_have_the_published_crates() {
        let listed: Vec<&str> = crates().collect();
        let packages = workspace::metadata().unwrap().packages;
        let published: BTreeSet<&str> = packages
            .iter()
            .filter(|package| package.is_published())
            .map(|package| package.name.as_str())
            .collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), published);
        assert_eq!(listed.len(), published.len());
        assert_eq!(libraries().count() + 1, listed.len());
    }
}
