//! [`assert_explained`]: compares responses with the pages of reason codes.

const PAGE: &str = concat!(
    include_str!("../../docs/use/reason-codes.md"),
    include_str!("../../docs/use/reason-codes-messages.md"),
    include_str!("../../docs/use/reason-codes-sign-in.md"),
);

/// Asserts that a page of reason codes has this code with this status. Panics otherwise.
pub(crate) fn assert_explained(code: &str, status: u16) {
    let row = PAGE
        .lines()
        .find_map(|line| line.strip_prefix(&format!("| `{code}` | ")));
    let statuses = row
        .and_then(|row| row.split(" | ").next())
        .unwrap_or_else(|| panic!("{code} is not explained"));
    assert!(
        statuses
            .split(", ")
            .any(|listed| listed == status.to_string()),
        "{code} with {status}: the page has {statuses}"
    );
}
