//! The committed counts of instructions, and on which machines they can be compared.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// The committed table, in the workspace.
pub const TABLE: &str = "docs/contribute/instructions.toml";

/// The instructions of one request of each case, and where they were counted.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The machine.
    pub environment: Environment,
    /// The counts, by name of the case.
    pub instructions: BTreeMap<String, u64>,
}

/// What counts depend on and this repository does not determine.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// The version of valgrind, which emulates a CPU.
    pub valgrind: String,
    /// The C library, whose copies and comparisons are counted.
    pub libc: String,
    /// The class of CPU that valgrind emulates on this machine.
    pub cpu: String,
}

impl Table {
    /// Reads the committed table.
    ///
    /// # Errors
    /// Fails when it cannot be read or parsed.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(root.join(TABLE))
            .with_context(|| format!("{TABLE} cannot be read"))?;
        toml::from_str(&text).with_context(|| format!("{TABLE} is not as expected"))
    }
}

impl Environment {
    /// Returns that of this machine.
    ///
    /// # Errors
    /// Fails when valgrind or the C library does not tell its version.
    pub fn of_this_machine(valgrind: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            valgrind: output(Command::new(valgrind).arg("--version"))?,
            libc: output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?,
            cpu: cpu().to_owned(),
        })
    }

    /// Returns what is different here, as a sentence, or `None` if counts can be compared.
    pub fn difference(&self, here: &Self) -> Option<String> {
        let pairs = [
            (&self.valgrind, &here.valgrind),
            (&self.libc, &here.libc),
            (&self.cpu, &here.cpu),
        ];
        let different = pairs.iter().filter(|(table, here)| table != here);
        let words: Vec<_> = different
            .map(|(table, here)| format!("{here} in place of {table}"))
            .collect();
        (!words.is_empty()).then(|| format!("this machine has {}", words.join(", ")))
    }
}

/// Valgrind emulates a fixed CPU of one of a few classes. The newest that all current x86-64
/// servers have is that with AVX2.
fn cpu() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        return "x86_64 with AVX2";
    }
    std::env::consts::ARCH
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("{program} could not be started"))?;
    if !output.status.success() {
        bail!("{program} ended with {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let environment = |libc: &str| Environment {
            valgrind: "v".into(),
            libc: libc.into(),
            cpu: "c".into(),
        };
        assert_eq!(
            environment("glibc 2.36").difference(&environment("glibc 2.36")),
            None
        );
        let difference = environment("glibc 2.36")
            .difference(&environment("glibc 2.41"))
            .unwrap();
        assert_eq!(
            difference,
            "this machine has glibc 2.41 in place of glibc 2.36"
        );
    }

    #[test]
    fn the_committed_table_can_be_read() {
        assert!(
            Table::read(&crate::workspace::root())
                .unwrap()
                .instructions
                .len()
                >= 8
        );
    }
}
