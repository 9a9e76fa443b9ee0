//! The error for parts that a program without the feature `dev` does not have.

/// Returns the error for something that only other packages have, with the names of these packages.
pub fn without_dev(what: &str) -> String {
    format!(
        "{what} is for development and not in this package; it is in the archives of the release, in the npm package \
         (`npx portcullis-mcp@{}`), and in a program that `cargo install portcullis` builds",
        env!("CARGO_PKG_VERSION")
    )
}
