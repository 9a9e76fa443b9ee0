//! `cargo xtask layers`: a crate can use crates of lower rows only, and a few crates have further
//! restrictions. The modules of a crate import each other without circles.

mod circles;
mod imports;

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, bail};

use circles::Modules;
use xtask::{
    crate_rows::ROWS,
    workspace::{self, Package},
};

/// Tools and tests. They can use every crate, and no crate in the rows can use them.
const FREE: &[&str] = &[
    "portcullis-bench",
    "portcullis-configuration-keys-page",
    "portcullis-dist",
    "portcullis-e2e",
    "portcullis-everything-server",
    "portcullis-examples",
    "portcullis-fuzz-bodies",
    "portcullis-reason-codes-page",
    "portcullis-scenarios",
    "portcullis-test-features",
    "xtask",
];

/// The test support crate. Crates use it in their tests only.
const TESTKIT: &str = "portcullis-testkit";

/// A crate that another must not use.
struct Ban {
    user: &'static str,
    used: &'static str,
    reason: &'static str,
}

/// Crates that a crate must not use although its row allows it.
const BANNED: &[Ban] = &[
    Ban {
        user: "portcullis-metadata",
        used: "tokio",
        reason: "wire types do no I/O",
    },
    Ban {
        user: "portcullis-metadata",
        used: "hyper",
        reason: "wire types do no I/O",
    },
    Ban {
        user: "portcullis-metadata",
        used: "tower",
        reason: "wire types do no I/O",
    },
    Ban {
        user: "portcullis-mcp",
        used: "tokio",
        reason: "wire types do no I/O",
    },
    Ban {
        user: "portcullis-mcp",
        used: "hyper",
        reason: "wire types do no I/O",
    },
    Ban {
        user: "portcullis-mcp",
        used: "tower",
        reason: "wire types do no I/O",
    },
    Ban {
        user: "portcullis-guard",
        used: "portcullis-mcp",
        reason: "the guard protects any HTTP resource",
    },
    Ban {
        user: "portcullis-guard",
        used: "portcullis-session",
        reason: "the guard protects any HTTP resource",
    },
    Ban {
        user: "portcullis-config",
        used: "portcullis-client",
        reason: "a server obtains no tokens",
    },
    Ban {
        user: "portcullis-serve",
        used: "portcullis-client",
        reason: "a server obtains no tokens",
    },
];

/// The only crate that uses josekit.
const JOSE: &str = "portcullis-jose";

/// The only crates that use clap: those with commands.
const COMMANDS: &[&str] = &[
    "portcullis",
    "portcullis-client-commands",
    "portcullis-operator-commands",
];

/// Checks the dependencies of all packages, and the imports of the crates' modules. Fails when a
/// crate uses one that it must not use, or modules import each other in a circle, and lists all
/// violations.
pub(crate) fn run() -> anyhow::Result<()> {
    let packages = workspace::metadata()?.packages;
    let mut violations = violations(&packages);
    violations.extend(circles_of_modules()?);
    if !violations.is_empty() {
        bail!("the layers do not hold:\n  {}", violations.join("\n  "));
    }
    println!(
        "layers hold: {} packages in {} rows, and no circles of modules",
        packages.len(),
        ROWS.len()
    );
    Ok(())
}

/// Returns one line for each circle in a crate. Fails if a source file cannot be read.
fn circles_of_modules() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(workspace::root().join("crates")).context("crates cannot be read")? {
        let folder = entry?.path();
        let source = folder.join("src");
        let modules = Modules::read(&source)
            .with_context(|| format!("{} cannot be read", source.display()))?;
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        found.extend(
            modules
                .circles()
                .into_iter()
                .map(|circle| format!("crates/{name}/src: a circle: {circle}")),
        );
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns one line per violation.
fn violations(packages: &[Package]) -> Vec<String> {
    let rows = rows();
    let mut violations = Vec::new();
    for package in packages {
        if FREE.contains(&package.name.as_str()) {
            continue;
        }
        let Some(row) = rows.get(package.name.as_str()) else {
            violations.push(format!(
                "{} has no row; add it in xtask/src/crate_rows.rs",
                package.name
            ));
            continue;
        };
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind.as_deref() != Some("dev"))
        {
            violations.extend(violation(&package.name, *row, &dependency.name, &rows));
        }
    }
    violations
}

/// Returns the violation of one dependency, if it is one.
fn violation(user: &str, row: usize, used: &str, rows: &BTreeMap<&str, usize>) -> Option<String> {
    if let Some(ban) = BANNED
        .iter()
        .find(|ban| ban.user == user && ban.used == used)
    {
        return Some(format!("{user} uses {used}: {}", ban.reason));
    }
    if used == "josekit" && user != JOSE {
        return Some(format!("{user} uses josekit; only {JOSE} may use it"));
    }
    if used == "clap" && !COMMANDS.contains(&user) {
        return Some(format!(
            "{user} uses clap; only {} may use it",
            COMMANDS.join(", ")
        ));
    }
    if FREE.contains(&used) || used == TESTKIT {
        return Some(format!("{user} uses {used}, which is for tests and tools"));
    }
    let used_row = rows.get(used)?;
    (*used_row >= row).then(|| {
        format!("{user} (row {row}) uses {used} (row {used_row}); only lower rows may be used")
    })
}

/// Returns the row of each crate in the rows, from 0.
fn rows() -> BTreeMap<&'static str, usize> {
    ROWS.iter()
        .enumerate()
        .flat_map(|(position, names)| names.iter().map(move |name| (*name, position)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::workspace::Dependency;

    fn package(name: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependencies = uses
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(str::to_owned),
            })
            .collect();
        Package {
            name: name.to_owned(),
            dependencies,
            publish: None,
        }
    }

    fn violations_of(name: &str, uses: &[(&str, Option<&str>)]) -> Vec<String> {
        violations(&[package(name, uses)])
    }

    #[test]
    fn lower_rows_and_external_crates_are_allowed() {
        assert!(
            violations_of(
                "portcullis-guard",
                &[("portcullis-verifier", None), ("http", None)]
            )
            .is_empty()
        );
        assert!(violations_of("portcullis-testkit", &[("portcullis-jose", None)]).is_empty());
        assert!(violations_of("xtask", &[("portcullis", None)]).is_empty());
    }

    #[test]
    fn the_same_or_a_higher_row_is_a_violation() {
        assert_eq!(
            violations_of("portcullis-jose", &[("portcullis-session", None)]).len(),
            1
        );
        assert_eq!(
            violations_of("portcullis-verifier", &[("portcullis-guard", None)]).len(),
            1
        );
        assert_eq!(
            violations_of("portcullis-testkit", &[("portcullis-verifier", None)]).len(),
            1
        );
    }

    #[test]
    fn build_dependencies_count_and_dev_dependencies_do_not() {
        assert_eq!(
            violations_of("portcullis-jose", &[("portcullis", Some("build"))]).len(),
            1
        );
        assert!(violations_of("portcullis-jose", &[("portcullis", Some("dev"))]).is_empty());
    }

    #[test]
    fn banned_crates_are_violations() {
        assert_eq!(
            violations_of("portcullis-metadata", &[("tokio", None)]).len(),
            1
        );
        assert_eq!(
            violations_of("portcullis-guard", &[("portcullis-mcp", None)]).len(),
            1
        );
        assert_eq!(
            violations_of("portcullis-verifier", &[("josekit", None)]).len(),
            1
        );
        assert_eq!(
            violations_of("portcullis-config", &[("clap", None)]).len(),
            1
        );
        assert_eq!(
            violations_of("portcullis-client-commands", &[("clap", None)]).len(),
            0
        );
        assert_eq!(
            violations_of("portcullis-verifier", &[("portcullis-testkit", None)]).len(),
            1
        );
    }

    /// N1: the binary is thin.
    #[test]
    fn the_binary_has_at_most_2500_lines() {
        let folder = workspace::root().join("crates/server/src");
        let lines: usize = workspace::rust_files(&folder)
            .unwrap()
            .iter()
            .map(|file| fs::read_to_string(file).unwrap().lines().count())
            .sum();
        assert!((1..=2_500).contains(&lines), "{lines} lines");
    }

    #[test]
    fn a_crate_without_a_row_is_a_violation() {
        assert_eq!(violations_of("portcullis-new", &[]).len(), 1);
    }
}
