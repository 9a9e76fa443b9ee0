//! The bill of materials of a program (CycloneDX 1.6, JSON): the crates that cargo compiles for it,
//! with version, license, checksum and dependencies.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use xtask::workspace;

use crate::{
    binaries::Features,
    release::{FileMode, Release, install_content},
    report::Step,
    shell,
    target::Target,
};

/// A crate in a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
}

/// What is known about a crate.
#[derive(Debug, Default)]
struct Facts {
    license: String,
    /// The SHA-256 hash of its archive in the registry; `None` for a crate of this workspace.
    checksum: Option<String>,
    dependencies: BTreeSet<Crate>,
}

/// Writes the bills of materials of the programs for a target. Fails when cargo fails, or its
/// output is not understood.
pub(crate) fn write(release: &Release, target: &Target) -> anyhow::Result<Step> {
    let write = |features: &Features| {
        let content = content(&release.root, &release.version, target, *features)?;
        let file = release
            .out
            .join(file_name(&release.version, target, *features));
        install_content(content.as_bytes(), &file, FileMode::Data)?;
        Ok(file)
    };
    Ok(Step::Built(
        target
            .programs()
            .iter()
            .map(write)
            .collect::<anyhow::Result<_>>()?,
    ))
}

fn file_name(version: &str, target: &Target, features: Features) -> String {
    let program = match features {
        Features::Full => "",
        Features::Server => "-server",
    };
    format!("portcullis-{version}-{}{program}.cdx.json", target.triple)
}

/// Returns the bill of materials of a program. Fails when cargo fails, or its output is not
/// understood.
pub(crate) fn content(
    root: &Path,
    version: &str,
    target: &Target,
    features: Features,
) -> anyhow::Result<String> {
    let mut cargo =
        workspace::cargo(&["tree", "--locked", "--package=portcullis", "--prefix=depth"]);
    cargo
        .args([
            "--edges=normal,build",
            "--format=|{p}|{l}",
            "--target",
            target.triple,
        ])
        .args(features.arguments());
    let mut crates = parse_tree(&shell::output(&mut cargo)?)?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock cannot be read")?;
    for (name, checksum) in parse_lock(&lock)? {
        if let Some(facts) = crates.get_mut(&name) {
            facts.checksum = Some(checksum);
        }
    }
    Ok(serde_json::to_string_pretty(&document(
        &crates,
        version,
        target.triple,
    )?)?)
}

/// Reads the output of `cargo tree`: `DEPTH|NAME vVERSION (MORE)|LICENSE` in each line. ` (*)` at
/// its end stands for the dependencies of an earlier line.
fn parse_tree(tree: &str) -> anyhow::Result<BTreeMap<Crate, Facts>> {
    let mut crates: BTreeMap<Crate, Facts> = BTreeMap::new();
    let mut path: Vec<Crate> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let mut fields = line.split('|');
        let (Some(depth), Some(package), Some(license)) =
            (fields.next(), fields.next(), fields.next())
        else {
            bail!("cargo tree printed {line:?}");
        };
        let mut words = package.split(' ');
        let (Some(name), Some(version)) = (
            words.next(),
            words.next().and_then(|word| word.strip_prefix('v')),
        ) else {
            bail!("cargo tree printed the package {package:?}");
        };
        let depth: usize = depth
            .parse()
            .with_context(|| format!("cargo tree printed the depth {depth:?}"))?;
        let found = Crate {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        path.truncate(depth);
        if let Some(user) = path.last() {
            crates
                .entry(user.clone())
                .or_default()
                .dependencies
                .insert(found.clone());
        }
        crates.entry(found.clone()).or_default().license =
            license.trim_end_matches(" (*)").to_owned();
        path.push(found);
    }
    Ok(crates)
}

/// Returns the checksums in `Cargo.lock`.
fn parse_lock(lock: &str) -> anyhow::Result<Vec<(Crate, String)>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        checksum: Option<String>,
    }
    let lock: Lock = toml::from_str(lock).context("Cargo.lock is not as expected")?;
    let known = lock.package.into_iter().filter_map(|package| {
        let checksum = package.checksum?;
        Some((
            Crate {
                name: package.name,
                version: package.version,
            },
            checksum,
        ))
    });
    Ok(known.collect())
}

/// Returns the document with all crates.
fn document(crates: &BTreeMap<Crate, Facts>, version: &str, triple: &str) -> anyhow::Result<Value> {
    let (program, _) = crates
        .iter()
        .find(|(found, _)| found.name == "portcullis")
        .context("cargo tree has no portcullis")?;
    let components: Vec<Value> = crates
        .iter()
        .filter(|(found, _)| *found != program)
        .map(|(found, facts)| component(found, facts))
        .collect();
    let dependencies: Vec<Value> = crates
        .iter()
        .map(|(found, facts)| json!({ "ref": found.purl(), "dependsOn": facts.dependencies.iter().map(Crate::purl).collect::<Vec<_>>() }))
        .collect();
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": program.purl(),
                "name": "portcullis",
                "version": version,
                "purl": program.purl(),
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "properties": [{ "name": "portcullis:target", "value": triple }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Returns the entry of one crate.
fn component(found: &Crate, facts: &Facts) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": found.purl(),
        "name": found.name,
        "version": found.version,
        "purl": found.purl(),
    });
    if !facts.license.is_empty() {
        // Older crates separate alternatives with a slash, which is not an SPDX expression.
        let expression = facts.license.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(checksum) = &facts.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

impl Crate {
    /// Returns the package URL. A version of a package URL has no plus sign; that of a bundled C
    /// library often has one.
    fn purl(&self) -> String {
        format!(
            "pkg:cargo/{}@{}",
            self.name,
            self.version.replace('+', "%2B")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0|portcullis v0.1.0 (/w/crates/server)|MIT OR Apache-2.0\n1|anyhow v1.0.1|MIT OR Apache-2.0\n\
                        1|ring v0.17.1|Apache-2.0 AND ISC\n2|cc v1.2.0 (build)|MIT/Apache-2.0\n1|cc v1.2.0|MIT/Apache-2.0 (*)\n";

    #[test]
    fn the_tree_becomes_a_graph() {
        let crates = parse_tree(TREE).unwrap();
        let names = |found: &Crate| {
            crates[found]
                .dependencies
                .iter()
                .map(|used| used.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(crates.len(), 4);
        assert_eq!(
            names(&Crate {
                name: "portcullis".into(),
                version: "0.1.0".into()
            }),
            ["anyhow", "cc", "ring"]
        );
        assert_eq!(
            names(&Crate {
                name: "ring".into(),
                version: "0.17.1".into()
            }),
            ["cc"]
        );
        assert!(parse_tree("something else").is_err());
    }

    #[test]
    fn package_urls_are_encoded() {
        let found = Crate {
            name: "openssl-src".into(),
            version: "300.5.4+3.5.4".into(),
        };
        assert_eq!(found.purl(), "pkg:cargo/openssl-src@300.5.4%2B3.5.4");
    }

    #[test]
    fn the_document_has_every_crate_with_license_and_checksum() {
        let mut crates = parse_tree(TREE).unwrap();
        let lock = "[[package]]\nname = \"cc\"\nversion = \"1.2.0\"\nchecksum = \"ab\"\n[[package]]\nname = \"x\"\nversion = \"1.0.0\"\n";
        for (name, checksum) in parse_lock(lock).unwrap() {
            crates.get_mut(&name).unwrap().checksum = Some(checksum);
        }
        let document = document(&crates, "0.1.0", "x86_64-unknown-linux-musl").unwrap();
        assert_eq!(
            document["metadata"]["component"]["purl"],
            "pkg:cargo/portcullis@0.1.0"
        );
        assert_eq!(document["components"].as_array().unwrap().len(), 3);
        let cc = &document["components"][1];
        assert_eq!(cc["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(
            cc["hashes"][0],
            json!({ "alg": "SHA-256", "content": "ab" })
        );
        assert_eq!(document["dependencies"].as_array().unwrap().len(), 4);
    }
}
