//! The results of each scenario, and the table of both runs.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

/// The scenarios of one run, each with its checks sorted by name.
#[derive(Debug, Default)]
pub(super) struct Results(BTreeMap<String, Vec<Check>>);

/// One check of a scenario.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Check {
    id: String,
    #[serde(default)]
    name: String,
    status: String,
}

impl Results {
    /// Reads the folders that the suite writes: `server-<scenario>-<time>/checks.json`.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut scenarios = BTreeMap::new();
        for entry in
            fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?
        {
            let path = entry?.path();
            let file = path.join("checks.json");
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .and_then(scenario);
            if let (Some(name), true) = (name, file.exists()) {
                let text = fs::read_to_string(&file)?;
                let mut checks: Vec<Check> = serde_json::from_str(&text)
                    .with_context(|| format!("{} cannot be read", file.display()))?;
                checks.sort();
                scenarios.insert(name.to_owned(), checks);
            }
        }
        Ok(Self(scenarios))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the scenarios with another result than in the other run, except failures that became
    /// successes.
    pub(super) fn differing(&self, other: &Self) -> Vec<String> {
        let names = self
            .0
            .keys()
            .chain(other.0.keys().filter(|name| !self.0.contains_key(*name)));
        names
            .filter(|name| !is_same_or_stricter(self.0.get(*name), other.0.get(*name)))
            .cloned()
            .collect()
    }

    /// Returns the number of scenarios that differ only by failures that became successes.
    fn stricter(&self, other: &Self) -> usize {
        let differs = |name: &&String| self.0.get(*name) != other.0.get(*name);
        let is_stricter =
            |name: &&String| is_same_or_stricter(self.0.get(*name), other.0.get(*name));
        self.0.keys().filter(differs).filter(is_stricter).count()
    }

    /// Returns the number of scenarios without failures and warnings, and the number of all.
    fn passed(&self) -> (usize, usize) {
        let passed = self
            .0
            .values()
            .filter(|checks| !checks.is_empty() && !checks.iter().any(Check::is_fault));
        (passed.count(), self.0.len())
    }

    /// Returns the differing checks of the other run.
    fn explain(&self, other: &Self, scenario: &str) -> Vec<String> {
        let checks = |results: &Self| -> Vec<String> {
            let checks = results.0.get(scenario).into_iter().flatten();
            checks
                .map(|check| format!("{} {} {}", check.status, check.id, check.name))
                .collect()
        };
        let direct = checks(self);
        let through = checks(other);
        let only = |list: &[String], others: &[String], title: &str| -> Vec<String> {
            list.iter()
                .filter(|check| !others.contains(check))
                .map(|check| format!("    {title}: {check}"))
                .collect()
        };
        let mut lines = vec![format!("  {scenario}")];
        lines.extend(only(&direct, &through, "direct"));
        lines.extend(only(&through, &direct, "through the gateway"));
        lines
    }
}

/// Returns whether the checks are the same, except failures that became successes through the
/// gateway.
fn is_same_or_stricter(direct: Option<&Vec<Check>>, through: Option<&Vec<Check>>) -> bool {
    let (Some(direct), Some(through)) = (direct, through) else {
        return false;
    };
    let is_good = |(direct, through): (&Check, &Check)| {
        direct == through
            || (direct.is_named_as(through) && direct.is_fault() && through.status == "SUCCESS")
    };
    direct.len() == through.len() && direct.iter().zip(through).all(is_good)
}

impl Check {
    fn is_named_as(&self, other: &Self) -> bool {
        (&self.id, &self.name) == (&other.id, &other.name)
    }

    fn is_fault(&self) -> bool {
        matches!(self.status.as_str(), "FAILURE" | "WARNING")
    }
}

/// Returns the scenario in the name of a folder, which ends with the time.
fn scenario(folder: &str) -> Option<&str> {
    let rest = folder.strip_prefix("server-")?;
    // 2026-11-22T04-36-16-123Z
    let (name, time) = rest.split_at_checked(rest.len().checked_sub(25)?)?;
    time.starts_with("-20").then_some(name)
}

/// All servers and revisions.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<String>,
    details: Vec<String>,
    differing: usize,
}

impl Table {
    /// Adds both runs of a revision and returns the row.
    pub(super) fn add(
        &mut self,
        name: &str,
        revision: &str,
        direct: &Results,
        through: &Results,
        differing: &[String],
    ) -> String {
        let of = |(passed, all): (usize, usize)| format!("{passed}/{all}");
        let direct_passed = of(direct.passed());
        let gateway_passed = of(through.passed());
        let stricter = direct.stricter(through);
        let differs = differing.len();
        let row = format!(
            "{name:<20}{revision:<12}{direct_passed:>9}{gateway_passed:>9}{stricter:>10}{differs:>11}"
        );
        self.differing += differing.len();
        if !differing.is_empty() {
            self.details.push(format!("{name}, {revision}:"));
        }
        self.details.extend(
            differing
                .iter()
                .flat_map(|scenario| direct.explain(through, scenario)),
        );
        self.rows.push(row.clone());
        row
    }

    /// Adds a server that is not available.
    pub(super) fn skip(&mut self, name: &str, why: String) {
        self.rows.push(format!("{name:<20}skipped: {why}"));
    }

    /// Checks that scenarios ran, and that the gateway changed no result. Fails if a scenario
    /// differs, or none ran.
    pub(super) fn result(&self) -> anyhow::Result<()> {
        ensure!(
            self.rows.iter().any(|row| !row.contains("skipped: ")),
            "no server is available"
        );
        ensure!(
            self.differing == 0,
            "{} scenarios differ through the gateway",
            self.differing
        );
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.details
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(
            f,
            "{:<20}{:<12}{:>9}{:>9}{:>10}{:>11}",
            "server", "revision", "direct", "gateway", "stricter", "differing"
        )?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(checks: &[(&str, &str)]) -> Results {
        let check = |status: &str| Check {
            id: "a".into(),
            name: "A".into(),
            status: status.to_owned(),
        };
        Results(
            checks
                .iter()
                .map(|(name, status)| ((*name).to_owned(), vec![check(status)]))
                .collect(),
        )
    }

    #[test]
    fn the_time_is_no_part_of_a_scenario() {
        assert_eq!(
            scenario("server-tools-call-image-2026-11-22T04-36-16-123Z"),
            Some("tools-call-image")
        );
        assert_eq!(scenario("server-x"), None);
        assert_eq!(
            scenario("client-tools-call-image-2026-11-22T04-36-16-123Z"),
            None
        );
    }

    #[test]
    fn another_outcome_or_a_lost_scenario_differs() {
        let direct = results(&[("one", "SUCCESS"), ("two", "FAILURE")]);
        assert!(
            direct
                .differing(&results(&[("one", "SUCCESS"), ("two", "FAILURE")]))
                .is_empty()
        );
        let stricter = results(&[("one", "SUCCESS"), ("two", "SUCCESS")]);
        assert!(direct.differing(&stricter).is_empty());
        assert_eq!(direct.stricter(&stricter), 1);
        assert_eq!(
            direct.differing(&results(&[("one", "SUCCESS"), ("two", "SKIPPED")])),
            ["two"]
        );
        assert_eq!(
            direct.differing(&results(&[("one", "FAILURE"), ("two", "FAILURE")])),
            ["one"]
        );
        assert_eq!(direct.differing(&results(&[("one", "SUCCESS")])), ["two"]);
        assert_eq!(results(&[]).differing(&direct), ["one", "two"]);
    }

    #[test]
    fn a_difference_fails_and_is_explained() {
        let mut table = Table::default();
        assert!(table.result().is_err(), "nothing ran");
        let direct = results(&[("one", "SUCCESS")]);
        let through = results(&[("one", "FAILURE")]);
        table.add("rmcp", "2025-11-25", &direct, &direct, &[]);
        assert!(table.result().is_ok());
        table.add(
            "rmcp",
            "2026-07-28",
            &direct,
            &through,
            &direct.differing(&through),
        );
        assert!(table.result().is_err());
        assert!(
            table
                .to_string()
                .contains("through the gateway: FAILURE a A"),
            "{table}"
        );
    }
}
