//! The provenance of a release: an in-toto statement with the predicate of SLSA 1.0, which says
//! from which commit, with which tools and with which arguments the packages were built. It is not
//! signed.

use std::{collections::BTreeMap, env, path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::{
    release::{FileMode, Release, install_content, sha256},
    report::Step,
    shell,
};

/// The type of the build, which defines the external parameters: `docs/use/packages.md` describes
/// them.
const BUILD_TYPE: &str = "urn:portcullis:cargo-xtask-dist:1";
/// The files that determine the tools and sources of other parties.
const PINS: [&str; 4] = [
    "Cargo.lock",
    "rust-toolchain.toml",
    "xtask/dist/requirements/zig.txt",
    "xtask/dist/requirements/checks.txt",
];

/// Writes the statement about the packages of this build. Fails when git or rustc fails, or a file
/// cannot be read or written.
pub(crate) fn write(release: &Release, packages: &[PathBuf]) -> anyhow::Result<Step> {
    let git = |arguments: &[&str]| {
        shell::output(
            Command::new("git")
                .args(arguments)
                .current_dir(&release.root),
        )
    };
    let compiler = shell::output(
        Command::new("rustc")
            .arg("--version")
            .current_dir(&release.root),
    )?;
    let mut pins = BTreeMap::new();
    for file in PINS {
        pins.insert(file.to_owned(), sha256(&release.root.join(file))?);
    }
    let source = Source {
        commit: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
        has_changes: !git(&["status", "--porcelain"])?.trim().is_empty(),
        compiler: compiler.trim().to_owned(),
        pins,
    };
    let arguments: Vec<String> = env::args().skip(1).collect();
    let statement = statement(release, &release.digests(packages)?, &source, &arguments);
    let file = release
        .out
        .join(format!("portcullis-{}.intoto.json", release.version));
    install_content(format!("{statement:#}\n").as_bytes(), &file, FileMode::Data)?;
    Ok(Step::Built(vec![file]))
}

/// What the packages were built from.
struct Source {
    commit: String,
    /// Whether the checkout had changes that are in no commit.
    has_changes: bool,
    compiler: String,
    /// The names of [`PINS`] and their SHA-256 hashes.
    pins: BTreeMap<String, String>,
}

fn statement(
    release: &Release,
    packages: &BTreeMap<String, String>,
    source: &Source,
    arguments: &[String],
) -> Value {
    let subject: Vec<Value> = packages
        .iter()
        .map(|(name, digest)| json!({ "name": name, "digest": { "sha256": digest } }))
        .collect();
    let pins = source
        .pins
        .iter()
        .map(|(name, digest)| json!({ "name": name, "digest": { "sha256": digest } }));
    let commit = json!({ "name": "source", "digest": { "gitCommit": source.commit } });
    let dependencies: Vec<Value> = [commit].into_iter().chain(pins).collect();
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subject,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": { "version": release.version, "arguments": arguments },
                "internalParameters": {
                    "profile": release.profile,
                    "compiler": source.compiler,
                    "sourceTime": release.time,
                    "sourceHasUncommittedChanges": source.has_changes,
                },
                "resolvedDependencies": dependencies,
            },
            "runDetails": { "builder": { "id": "urn:portcullis:unsigned-local-build" } },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statement names every package with its hash, the commit, and what pins the tools; the
    /// members are those of in-toto Statement 1 and SLSA 1.0.
    #[test]
    fn a_statement_names_packages_and_source() {
        let release = Release {
            version: "1.0.0".into(),
            profile: "dist".into(),
            url: String::new(),
            maintainer: String::new(),
            time: 1_800_000_000,
            root: PathBuf::new(),
            out: PathBuf::new(),
            staging: PathBuf::new(),
        };
        let packages = BTreeMap::from([
            ("a.tar.gz".to_owned(), "00".to_owned()),
            ("b.deb".to_owned(), "11".to_owned()),
        ]);
        let source = Source {
            commit: "abcd".into(),
            has_changes: true,
            compiler: "rustc 1".into(),
            pins: BTreeMap::from([("Cargo.lock".to_owned(), "22".to_owned())]),
        };
        let statement = statement(
            &release,
            &packages,
            &source,
            &["--only".to_owned(), "deb".to_owned()],
        );
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
        assert_eq!(
            statement["subject"],
            json!([{ "name": "a.tar.gz", "digest": { "sha256": "00" } }, { "name": "b.deb", "digest": { "sha256": "11" } }])
        );
        let build = &statement["predicate"]["buildDefinition"];
        assert_eq!(
            build["externalParameters"]["arguments"],
            json!(["--only", "deb"])
        );
        assert_eq!(
            build["internalParameters"]["sourceHasUncommittedChanges"],
            true
        );
        assert_eq!(
            build["resolvedDependencies"][0]["digest"]["gitCommit"],
            "abcd"
        );
        assert_eq!(
            build["resolvedDependencies"][1],
            json!({ "name": "Cargo.lock", "digest": { "sha256": "22" } })
        );
        assert!(statement["predicate"]["runDetails"]["builder"]["id"].is_string());
    }

    #[test]
    fn the_pinned_files_exist() {
        for file in PINS {
            assert!(
                std::fs::metadata(xtask::workspace::root().join(file)).is_ok(),
                "{file}"
            );
        }
    }
}
