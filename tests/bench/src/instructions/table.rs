//! [`Table`]: the committed counts.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::profile::Profile;

/// The part of a case that a function must have to be listed.
const LISTED_PART: u64 = 200;

/// The text before the cases.
const HEAD: &str = "\
# Instructions of one request, and of the functions that need the most, without what they call.
# Written by `cargo xtask bench instructions --write`. A case may not grow by more than 1 % without a change of this file.
";

/// The counts of all cases, by name.
#[derive(Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct Table(BTreeMap<String, Counts>);

/// The counts of a case.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Counts {
    /// The instructions of one request.
    pub(super) instructions: u64,
    /// Those of the functions that need at least 0.5 %.
    pub(super) functions: BTreeMap<String, u64>,
}

impl Counts {
    /// Returns the counts of one request of this many.
    pub(super) fn of(profile: &Profile, requests: u32) -> Self {
        let instructions = profile.total() / u64::from(requests);
        let each = profile.functions.iter().map(|(name, count)| (name.clone(), count / u64::from(requests)));
        Self { instructions, functions: each.filter(|(_, count)| count * LISTED_PART >= instructions).collect() }
    }
}

impl Table {
    /// Reads the table. A table that does not exist is empty.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        toml::from_str(&fs::read_to_string(file)?).with_context(|| format!("{} cannot be read", file.display()))
    }

    pub(super) fn get(&self, case: &str) -> Option<&Counts> {
        self.0.get(case)
    }

    pub(super) fn set(&mut self, case: &str, counts: Counts) {
        self.0.insert(case.to_owned(), counts);
    }

    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text = format!("{HEAD}{}", self.text());
        fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
    }

    /// Returns the cases as TOML, the most expensive function first.
    fn text(&self) -> String {
        let mut text = String::new();
        for (case, counts) in &self.0 {
            let mut functions: Vec<_> = counts.functions.iter().collect();
            functions.sort_by_key(|(name, count)| (u64::MAX - **count, (*name).clone()));
            text.push_str(&format!("\n[{case}]\ninstructions = {}\n\n[{case}.functions]\n", counts.instructions));
            for (name, count) in functions {
                text.push_str(&format!("{name:?} = {count}\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_table_is_read_again() {
        let mut table = Table::default();
        let profile = Profile::parse("fn=<[u8] as \"x\">::small\n0 10\nfn=b\n0 90000\nfn=c\n0 10000\n");
        table.set("cached-post", Counts::of(&profile, 10));
        let read: Table = toml::from_str(&table.text()).unwrap();
        let counts = read.get("cached-post").unwrap();
        assert_eq!(counts.instructions, 10_001);
        assert_eq!(
            counts.functions.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>(),
            [("b", 9_000), ("c", 1_000)]
        );
    }
}
