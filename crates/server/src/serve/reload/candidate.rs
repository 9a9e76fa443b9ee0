//! A configuration that can replace the running one.

use std::path::Path;

use super::super::file_versions::FileVersions;
use crate::{
    config::{Change, Config, ConfigErrors, Diagnostic, Overrides, changes, keep_until_restart, load},
    plan::{Plan, all_errors},
};

/// A configuration that can replace the running one.
pub(super) struct Candidate {
    pub(super) config: Config,
    pub(super) plan: Plan,
    /// The differences from the running configuration.
    pub(super) applied: Vec<Change>,
    /// The differences that need a restart. The configuration has the running values.
    pub(super) kept: Vec<Change>,
}

impl Candidate {
    /// Reads the configuration, its files and its secrets, as at the start. Also returns the versions of the files, if the
    /// configuration can be read.
    ///
    /// # Errors
    /// Fails when the configuration cannot run, as it is written or with the running values of keys that need a restart. There is
    /// an error for each value that cannot be used.
    pub(super) fn read(
        file: &Path,
        overrides: Overrides,
        running: &Config,
    ) -> (Option<FileVersions>, Result<Self, ConfigErrors>) {
        let mut loaded = match load(file, overrides) {
            Ok(loaded) => loaded,
            Err(unusable) => return (None, Err(all_errors(unusable))),
        };
        // A passed socket has an address that is not configured.
        if !loaded.sets("listen") {
            loaded.config.listen = running.listen;
        }
        let versions = FileVersions::of(file, &loaded.config);
        let candidate = Self::new(loaded.config, running);
        (Some(versions), candidate.map_err(|errors| ConfigErrors(loaded.places.locate(errors))))
    }

    fn new(mut config: Config, running: &Config) -> Result<Self, Vec<Diagnostic>> {
        let mut plan = Plan::new(&config)?;
        let kept = keep_until_restart(running, &mut config);
        if !kept.is_empty() {
            let keys: Vec<&str> = kept.iter().map(|change| change.key.as_str()).collect();
            let needs_restart = |Diagnostic { key, text }: Diagnostic| {
                let text = format!(
                    "{text}; it needs a restart, because these keys cannot change while the server runs: {}",
                    keys.join(", ")
                );
                Diagnostic { key, text }
            };
            plan = Plan::new(&config).map_err(|errors| errors.into_iter().map(needs_restart).collect::<Vec<_>>())?;
        }
        let applied = changes(running, &config);
        Ok(Self { config, plan, applied, kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;

    const RUNNING: &str = r#"
        listen = "127.0.0.1:3000"
        base_url = "http://127.0.0.1:3000"
        [[resource]]
        endpoint = "/mcp"
        auth = "none"
        upstream = "demo"
    "#;

    fn candidate(running: &str, from: &str, to: &str) -> Result<Candidate, Vec<String>> {
        assert!(running.contains(from), "{from}");
        let candidate = Candidate::new(from_text(&running.replace(from, to)).unwrap(), &from_text(running).unwrap());
        candidate.map_err(|reasons| reasons.iter().map(ToString::to_string).collect())
    }

    /// J10: what needs a restart is kept back, and the rest is applied.
    #[test]
    fn changes_are_divided() {
        let candidate =
            candidate(RUNNING, "127.0.0.1:3000\"\n        base", "127.0.0.1:4000\"\nshutdown_timeout = \"1s\"\n base");
        let candidate = candidate.ok().unwrap();
        let keys = |changes: &[Change]| changes.iter().map(|change| change.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&candidate.kept), ["listen"]);
        assert_eq!(keys(&candidate.applied), ["shutdown_timeout"]);
        assert_eq!(candidate.plan.listen.port(), 3000);
    }

    /// D1, J10: rules about the address that the server listens on are checked with the running one.
    #[test]
    fn the_running_address_is_checked() {
        let open =
            RUNNING.replace("listen = \"127.0.0.1:3000\"", "listen = \"0.0.0.0:3000\"").replace("auth = \"none\"", "");
        let open = format!("{open}\n[[issuer]]\nissuer = \"https://a.example\"");
        let closed = open.replace("0.0.0.0:3000", "127.0.0.1:3000").replace("endpoint", "auth = \"none\"\nendpoint");
        let reasons = Candidate::new(from_text(&closed).unwrap(), &from_text(&open).unwrap()).err().unwrap();
        let reason = reasons[0].to_string();
        assert!(reason.contains("needs a restart"), "{reason}");
        assert!(reason.contains("listen"), "{reason}");
        assert!(reason.contains("auth"), "{reason}");
    }

    /// J10: every part that cannot run has its reason.
    #[test]
    fn all_reasons_are_found() {
        let many = "upstream = \"demo\"\n[[resource]]\nendpoint = \"bad\"\nupstream = \"demo\"\nauth = \"none\"\n\
                    [[issuer]]\nissuer = \"ftp://x\"\n[[issuer]]\nissuer = \"https://a.example\"\nalgorithms = [\"none\"]\n\
                    [limits]\nmax_body = 1\nmax_depth = 1\n[session]\nidle_timeout = \"1ms\"";
        let reasons = candidate(RUNNING, "upstream = \"demo\"", many).err().unwrap();
        for wanted in ["max_body", "max_depth", "idle_timeout", "ftp://x", "algorithms has \"none\""] {
            assert!(reasons.iter().any(|reason| reason.contains(wanted)), "{wanted}: {reasons:#?}");
        }
        let many = "upstream = \"demo\"\nrevisions = []\n[[resource]]\nendpoint = \"bad\"\nauth = \"none\"\nupstream = \"demo\"";
        let reasons = candidate(RUNNING, "upstream = \"demo\"", many).err().unwrap();
        for wanted in ["resource[0].revisions", "resource[1].endpoint"] {
            assert!(reasons.iter().any(|reason| reason.contains(wanted)), "{wanted}: {reasons:#?}");
        }
    }
}
