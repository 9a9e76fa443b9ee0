//! [`Corpora`]: the committed inputs of all targets.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;

const FOLDER: &str = "fuzz/corpora";

/// All inputs, by the name of their folder.
pub(super) struct Corpora(BTreeMap<String, Vec<Input>>);

/// One committed file.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Corpora {
    /// Reads all inputs. Fails if a folder or file cannot be read.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut corpora = BTreeMap::new();
        for (name, path) in entries(&root.join(FOLDER))? {
            let mut inputs = Vec::new();
            for (name, path) in entries(&path)? {
                let bytes = fs::read(&path)
                    .with_context(|| format!("{} cannot be read", path.display()))?;
                inputs.push(Input { name, bytes });
            }
            corpora.insert(name, inputs);
        }
        Ok(Self(corpora))
    }

    /// Returns the inputs of a target, in the order of their names.
    pub(super) fn inputs(&self, target: &str) -> &[Input] {
        self.0.get(target).map_or(&[], Vec::as_slice)
    }

    /// Returns the targets without inputs, and the folders without a target.
    pub(super) fn mismatches(&self, targets: &[&str]) -> Vec<String> {
        let without_inputs = targets
            .iter()
            .filter(|target| self.inputs(target).is_empty());
        let without_inputs =
            without_inputs.map(|target| format!("{target} has no input in {FOLDER}/{target}"));
        let without_target = self
            .0
            .keys()
            .filter(|folder| !targets.contains(&folder.as_str()));
        without_inputs
            .chain(without_target.map(|folder| format!("{FOLDER}/{folder} belongs to no target")))
            .collect()
    }
}

/// Returns the entries of a folder by name, so that every machine reads them in the same order.
fn entries(folder: &Path) -> anyhow::Result<BTreeMap<String, std::path::PathBuf>> {
    let read =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let named = read.map(|entry| {
        let entry = entry?;
        Ok((
            entry.file_name().to_string_lossy().into_owned(),
            entry.path(),
        ))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpora(folders: &[(&str, usize)]) -> Corpora {
        let inputs = |count| {
            (0..count)
                .map(|_| Input {
                    name: "a".to_owned(),
                    bytes: Vec::new(),
                })
                .collect()
        };
        Corpora(
            folders
                .iter()
                .map(|(name, count)| ((*name).to_owned(), inputs(*count)))
                .collect(),
        )
    }

    #[test]
    fn targets_and_folders_belong_together() {
        assert!(corpora(&[("sse", 1)]).mismatches(&["sse"]).is_empty());
        assert_eq!(
            corpora(&[("sse", 0)]).mismatches(&["sse"]).len(),
            1,
            "an empty corpus"
        );
        assert_eq!(corpora(&[]).mismatches(&["sse"]).len(), 1, "no corpus");
        assert_eq!(
            corpora(&[("sse", 1), ("old", 1)])
                .mismatches(&["sse"])
                .len(),
            1,
            "a corpus without target"
        );
    }
}
