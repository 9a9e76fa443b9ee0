//! The crates: a dry run of their publication, in the order of their dependencies.

use xtask::workspace;

use crate::{release::Release, report::Step, shell};

/// Packs all crates that are published, and resolves the dependencies of each among them and in the
/// registry. It uploads nothing and does not compile the packed crates. Fails when a crate cannot
/// be packed, such as when a dependency has no version.
pub(crate) fn dry_run(_: &Release) -> anyhow::Result<Step> {
    let mut cargo = workspace::cargo(&[
        "publish",
        "--dry-run",
        "--workspace",
        "--no-verify",
        "--locked",
    ]);
    shell::run(&mut cargo)?;
    Ok(Step::Checked(
        "all crates can be packed and published in order; their packed form was not compiled"
            .to_owned(),
    ))
}
