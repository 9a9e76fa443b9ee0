//! All commands of cargo share the builds of dependencies.

use std::collections::BTreeMap;

use anyhow::ensure;
use xtask::workspace;

/// The features of each package: `cargo build --workspace` enables those that `cargo test
/// --workspace` enables, because `tests/features` names them.
#[test]
fn tests_enable_no_more_features_than_builds() {
    let (builds, tests) = (
        features("normal,build").unwrap(),
        features("normal,build,dev").unwrap(),
    );
    for (package, of_builds) in builds {
        assert_eq!(
            of_builds, tests[&package],
            "{package}: name the features in tests/features/Cargo.toml"
        );
    }
}

/// Returns the sets of features with which each package is built.
fn features(edges: &str) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let tree = ["tree", "--workspace", "--locked", "--prefix=none"];
    let mut cargo = workspace::cargo(&tree);
    cargo.args(["--edges", edges, "--format={p}\t{f}"]);
    let output = cargo.output()?;
    ensure!(output.status.success(), "cargo tree failed");
    let mut features = BTreeMap::<String, Vec<String>>::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let Some((package, enabled)) = line.split_once('\t') else {
            continue;
        };
        // Cargo marks what it has printed before.
        let enabled = enabled.trim_end_matches(" (*)");
        let sets = features.entry(package.to_owned()).or_default();
        if let Err(place) = sets.binary_search_by(|set| set.as_str().cmp(enabled)) {
            sets.insert(place, enabled.to_owned());
        }
    }
    Ok(features)
}
