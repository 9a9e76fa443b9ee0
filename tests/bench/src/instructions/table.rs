use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;
use xtask::instructions::{Environment, TABLE, Table};

use super::{case::Case, counts::Counts};

/// The neighbour of the table. It explains a growth.
const FUNCTIONS: &str = "docs/contribute/instructions-by-function.toml";
/// The page, and what surrounds the table in it.
const PAGE: &str = "docs/contribute/benchmarks.md";
const BEGIN: &str = "<!-- from instructions.toml -->\n";
const END: &str = "<!-- end -->\n";

const TABLE_HEAD: &str = "\
# Instructions of one request. A case may change by 1 % against this table.
# Written by `cargo xtask bench instructions --write`, described in benchmarks.md.
";
const FUNCTIONS_HEAD: &str = "\
# The functions that need at least 0.5 % of a case, without what they call. It says which functions grew.
# Written by `cargo xtask bench instructions --write`.
";

/// The committed counts of all cases, and where they were counted.
pub(super) struct Committed {
    pub(super) environment: Environment,
    cases: BTreeMap<String, Counts>,
}

impl Committed {
    /// Reads the table and its neighbour.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let Table {
            environment,
            instructions,
        } = Table::read(root)?;
        let text = fs::read_to_string(root.join(FUNCTIONS))
            .with_context(|| format!("{FUNCTIONS} cannot be read"))?;
        let mut functions: BTreeMap<String, BTreeMap<String, u64>> =
            toml::from_str(&text).with_context(|| format!("{FUNCTIONS} is not as expected"))?;
        let cases = instructions.into_iter().map(|(case, instructions)| {
            let functions = functions.remove(&case).unwrap_or_default();
            (
                case,
                Counts {
                    instructions,
                    functions,
                },
            )
        });
        Ok(Self {
            environment,
            cases: cases.collect(),
        })
    }

    pub(super) fn get(&self, case: Case) -> Option<&Counts> {
        self.cases.get(case.name())
    }

    pub(super) fn set(&mut self, case: Case, counts: Counts) {
        self.cases.insert(case.name().to_owned(), counts);
    }

    /// Writes all three files.
    pub(super) fn write(&self, root: &Path) -> anyhow::Result<()> {
        let page = fs::read_to_string(root.join(PAGE))?;
        for (file, text) in [
            (TABLE, self.table()),
            (FUNCTIONS, self.functions()),
            (PAGE, self.page(&page)?),
        ] {
            fs::write(root.join(file), text)
                .with_context(|| format!("{file} cannot be written"))?;
        }
        Ok(())
    }

    fn cases(&self) -> impl Iterator<Item = (Case, &Counts)> {
        Case::ALL
            .into_iter()
            .filter_map(|case| Some((case, self.get(case)?)))
    }

    fn table(&self) -> String {
        let Environment {
            valgrind,
            libc,
            cpu,
        } = &self.environment;
        let mut text = format!(
            "{TABLE_HEAD}\n[environment]\nvalgrind = {valgrind:?}\nlibc = {libc:?}\ncpu = {cpu:?}\n\n[instructions]\n"
        );
        for (case, counts) in self.cases() {
            text.push_str(&format!("{} = {}\n", case.name(), counts.instructions));
        }
        text
    }

    fn functions(&self) -> String {
        let mut text = FUNCTIONS_HEAD.to_owned();
        for (case, counts) in self.cases() {
            text.push_str(&format!("\n[{}]\n", case.name()));
            for (name, count) in counts.sorted() {
                text.push_str(&format!("{name:?} = {count}\n"));
            }
        }
        text
    }

    /// Returns the page with the current table.
    fn page(&self, page: &str) -> anyhow::Result<String> {
        let (before, rest) = page
            .split_once(BEGIN)
            .with_context(|| format!("{PAGE} has no line {BEGIN:?}"))?;
        let (_, after) = rest
            .split_once(END)
            .with_context(|| format!("{PAGE} has no line {END:?}"))?;
        let mut table = "| case | request | instructions |\n|---|---|---:|\n".to_owned();
        for (case, counts) in self.cases() {
            let count = grouped(counts.instructions);
            table.push_str(&format!(
                "| `{}` | {} | {count} |\n",
                case.name(),
                case.description()
            ));
        }
        Ok(format!("{before}{BEGIN}{table}{END}{after}"))
    }
}

/// Returns a number with a comma before each group of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy)
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N2: each case has a committed count.
    #[test]
    fn the_committed_files_are_as_written() {
        let root = xtask::workspace::root();
        let committed = Committed::read(&root).unwrap();
        let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
        assert_eq!(committed.cases().count(), Case::ALL.len());
        assert_eq!(committed.table(), read(TABLE));
        assert_eq!(committed.functions(), read(FUNCTIONS));
        let page = read(PAGE);
        assert_eq!(
            committed.page(&page).unwrap(),
            page,
            "`cargo xtask bench instructions --write` writes the page"
        );
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(
            [7, 61_042, 1_234_567].map(grouped),
            ["7", "61,042", "1,234,567"]
        );
    }
}
