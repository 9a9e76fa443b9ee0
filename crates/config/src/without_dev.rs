//! The error for parts that a program without the feature `dev` does not have.

/// Returns the error for something that only other packages have, with how to build one of them.
pub fn without_dev(what: &str) -> String {
    format!(
        "{what} is for development and not in this package; from a clone of the repository, `cargo install --locked --path \
         crates/server` builds a program that has it, and `cargo xtask dist` archives and an npm package that have it"
    )
}
