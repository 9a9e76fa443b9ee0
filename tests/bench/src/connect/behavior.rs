//! [`Behavior`]: what `connect` and `mcp-remote` do in difficult situations.

use std::{fmt, path::Path};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{OURS, THEIRS, driver};

/// How much longer a situation may take than with `mcp-remote`: a factor, and milliseconds of
/// noise.
const MAX_RATIO: f64 = 1.5;
const NOISE_MS: f64 = 100.0;

/// What one bridge did in one situation.
#[derive(Deserialize, Serialize)]
struct SituationResult {
    situation: String,
    bridge: String,
    /// The time that it took, if it did what was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    /// What it did instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// All situations, each with both bridges.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Behavior(Vec<SituationResult>);

impl Behavior {
    /// Tries all situations. Fails if the script fails, or does not report each situation with both
    /// bridges.
    pub(super) fn observe(
        portcullis: &Path,
        packages: &Path,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let plan = json!({
            "folder": folder,
            "bridges": [
                { "name": OURS, "command": portcullis, "args": ["connect"] },
                { "name": THEIRS, "command": "node", "args": [packages.join("mcp-remote/dist/proxy.js")] },
            ],
        });
        let behavior = Self(driver::run("behavior.mjs", &plan, folder)?);
        let results = behavior.0.len();
        ensure!(
            results > 0 && 2 * behavior.pairs().count() == results,
            "{results} results are not pairs of both bridges"
        );
        Ok(behavior)
    }

    /// Returns the situations in which `connect` does less than `mcp-remote`, or fails.
    pub(super) fn missed(&self) -> Vec<String> {
        let pairs = self.pairs().filter_map(|(ours, theirs)| {
            let Some(ms) = ours.ms else {
                return Some(format!("{}: {ours}", ours.situation));
            };
            let limit = theirs.ms? * MAX_RATIO + NOISE_MS;
            (ms > limit).then(|| format!("{}: {ours}, and {theirs} with {THEIRS}", ours.situation))
        });
        pairs.collect()
    }

    fn pairs(&self) -> impl Iterator<Item = (&SituationResult, &SituationResult)> {
        let of = |bridge| self.0.iter().filter(move |result| result.bridge == bridge);
        of(OURS).filter_map(move |ours| {
            Some((
                ours,
                of(THEIRS).find(|theirs| theirs.situation == ours.situation)?,
            ))
        })
    }
}

impl fmt::Display for SituationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ms {
            Some(ms) => f.pad(&format!("{ms:.0} ms")),
            None => f.pad("failed"),
        }
    }
}

impl fmt::Display for Behavior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<38}{:>20}{:>20}", "situation", OURS, THEIRS)?;
        for (ours, theirs) in self.pairs() {
            writeln!(f, "{:<38}{ours:>20}{theirs:>20}", ours.situation)?;
        }
        for outcome in &self.0 {
            if let Some(failed) = &outcome.failed {
                writeln!(f, "{}: {}: {failed}", outcome.bridge, outcome.situation)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed(ours: Option<f64>, theirs: Option<f64>) -> usize {
        let result = |bridge: &str, ms: Option<f64>| SituationResult {
            situation: "a restart".into(),
            bridge: bridge.into(),
            ms,
            failed: ms.is_none().then(|| "it hangs".into()),
        };
        Behavior(vec![result(OURS, ours), result(THEIRS, theirs)])
            .missed()
            .len()
    }

    #[test]
    fn a_row_that_is_worse_is_missed() {
        assert_eq!(missed(Some(10.0), Some(20.0)), 0);
        assert_eq!(missed(Some(10.0), None), 0);
        assert_eq!(missed(None, None), 1);
        assert_eq!(missed(None, Some(20.0)), 1);
        assert_eq!(missed(Some(1000.0), Some(20.0)), 1);
    }
}
