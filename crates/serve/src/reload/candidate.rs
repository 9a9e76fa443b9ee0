//! [`Candidate`]: the configuration that a reload reads, with its differences from the running one.

use super::{ConfigSource, config_file_versions::ConfigFileVersions};
use portcullis_config::{
    Change, Config, ConfigErrors, Diagnostic, changes, keep_until_restart, plan::Plan,
};

/// A valid configuration in place of the running one. Its plan can still fail to start: nothing is
/// built from it yet.
pub(super) struct Candidate {
    pub(super) config: Config,
    pub(super) plan: Plan,
    /// The differences from the running configuration.
    pub(super) applied: Vec<Change>,
    /// The differences that need a restart. The configuration has the running values.
    pub(super) kept: Vec<Change>,
}

/// The result of reading the configuration.
pub(super) struct Reading {
    /// The versions of the files before they were read. `None` if the configuration file is
    /// invalid, so that the files it names are unknown.
    pub(super) versions: Option<ConfigFileVersions>,
    pub(super) candidate: Result<Candidate, ConfigErrors>,
}

impl Candidate {
    /// Reads the configuration, its files and its secrets, as at the start.
    ///
    /// The candidate is an error when the configuration is invalid, as it is written or with the
    /// running values of keys that need a restart. It has all errors that [`Plan::new`] finds.
    pub(super) fn read(source: &ConfigSource) -> Reading {
        let mut loaded = match (source.load)(&source.file, source.overrides) {
            Ok(loaded) => loaded,
            Err(errors) => {
                return Reading {
                    versions: None,
                    candidate: Err(errors),
                };
            }
        };
        // A passed socket has an address that need not be configured.
        if source.has_passed_socket && !loaded.sets("listen") {
            loaded.config.listen = source.config.listen;
        }
        // Before the files are read: a change after this line is noticed at the next check.
        let versions = ConfigFileVersions::of(&source.file, &loaded.config);
        let candidate = Self::new(loaded.config, &source.config);
        let candidate = candidate.map_err(|errors| ConfigErrors(loaded.places.locate(errors)));
        Reading {
            versions: Some(versions),
            candidate,
        }
    }

    /// Validates a configuration that replaces the running one, except for the keys that need a
    /// restart.
    ///
    /// Validates it twice if such a key differs: first as it is written, because the next start
    /// reads it so, then with the running values, because the server runs with these until then.
    /// Fails with the errors of the first invalid form.
    fn new(mut config: Config, running: &Config) -> Result<Self, Vec<Diagnostic>> {
        let mut plan = Plan::new(&config)?;
        let kept = keep_until_restart(running, &mut config);
        if !kept.is_empty() {
            let keys: Vec<&str> = kept.iter().map(|change| change.key.as_str()).collect();
            let keys = keys.join(", ");
            let needs_restart = |Diagnostic { key, text }: Diagnostic| {
                let text = format!(
                    "{text}; or restart the server: the configuration is valid with the new values of these keys, which \
                     need a restart: {keys}"
                );
                Diagnostic { key, text }
            };
            plan = Plan::new(&config)
                .map_err(|errors| errors.into_iter().map(needs_restart).collect::<Vec<_>>())?;
        }
        let applied = changes(running, &config);
        Ok(Self {
            config,
            plan,
            applied,
            kept,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use portcullis_config::{Overrides, from_text, load, plan::all_errors};

    const LISTEN: &str = "listen = '127.0.0.1:4000'";
    const RESOURCE: &str = "[[resource]]\nendpoint = '/mcp'\nauth = 'none'\nupstream = 'demo'";

    /// Returns a configuration with these keys at its top and these lines at its end, which follow
    /// those of the resource.
    fn text(top: &str, end: &str) -> String {
        format!("base_url = 'http://127.0.0.1:3000'\n{top}\n{RESOURCE}\n{end}")
    }

    fn candidate(new: &str, running: &str) -> Result<Candidate, Vec<String>> {
        let candidate = Candidate::new(from_text(new).unwrap(), &from_text(running).unwrap());
        candidate.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn keys(changes: &[Change]) -> Vec<&str> {
        changes.iter().map(|change| change.key.as_str()).collect()
    }

    fn assert_all_found(errors: &[String], expected: &[&str]) {
        for wanted in expected {
            assert!(
                errors.iter().any(|error| error.contains(wanted)),
                "{wanted}: {errors:#?}"
            );
        }
    }

    /// J10: what needs a restart is kept back, and the rest is applied.
    #[test]
    fn changes_are_divided() {
        let new = text("listen = '127.0.0.1:5000'\nshutdown_timeout = '1s'", "");
        let candidate = candidate(&new, &text(LISTEN, "")).ok().unwrap();
        assert_eq!(keys(&candidate.kept), ["listen"]);
        assert_eq!(keys(&candidate.applied), ["shutdown_timeout"]);
        assert_eq!(candidate.plan.listen.port(), 4000);
    }

    /// D1, J10: rules about the address that the server listens on are checked with the running
    /// one.
    #[test]
    fn the_running_address_is_checked() {
        let issuer = "[[issuer]]\nissuer = 'https://a.example'";
        let running = text("listen = '0.0.0.0:4000'", issuer).replace("auth = 'none'", "");
        let errors = candidate(&text(LISTEN, issuer), &running).err().unwrap();
        assert_all_found(
            &errors,
            &[
                "resource[0].auth",
                "or restart the server",
                "need a restart: listen",
            ],
        );
    }

    /// J10: every invalid value has its error.
    #[test]
    fn all_errors_are_found() {
        let many = "[[resource]]\nendpoint = 'bad'\nupstream = 'demo'\nauth = 'none'\n[[issuer]]\nissuer = 'ftp://x'\n\
                    [[issuer]]\nissuer = 'https://a.example'\nalgorithms = ['none']\n[limits]\nmax_body = 1\nmax_depth = 1\n\
                    [session]\nidle_timeout = '1ms'\nmax_total = 0";
        let errors = candidate(&text(LISTEN, many), &text(LISTEN, ""))
            .err()
            .unwrap();
        assert_all_found(
            &errors,
            &[
                "max_body",
                "max_depth",
                "idle_timeout",
                "max_total",
                "ftp://x",
                "algorithms has \"none\"",
            ],
        );
        let many =
            "revisions = []\n[[resource]]\nendpoint = 'bad'\nauth = 'none'\nupstream = 'demo'";
        let errors = candidate(&text(LISTEN, many), &text(LISTEN, ""))
            .err()
            .unwrap();
        assert_all_found(&errors, &["resource[0].revisions", "resource[1].endpoint"]);
    }

    /// A configuration file on disk, from which a server runs that listens on port 4000.
    struct Running {
        _folder: TempDir,
        source: ConfigSource,
    }

    impl Running {
        fn new(has_passed_socket: bool) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let source = ConfigSource {
                file: folder.path().join("portcullis.toml"),
                overrides: Overrides::default(),
                load: |file, overrides| load(file, overrides).map_err(all_errors),
                config: from_text(&text(LISTEN, "")).unwrap(),
                has_passed_socket,
            };
            Self {
                _folder: folder,
                source,
            }
        }

        fn read(&self, text: &str) -> Reading {
            fs::write(&self.source.file, text).unwrap();
            Candidate::read(&self.source)
        }
    }

    /// J10: a deleted `listen` is a change that needs a restart, unless the socket was passed.
    #[test]
    fn a_deleted_address_needs_a_restart() {
        let without = text("", "");
        let own = Running::new(false).read(&without).candidate.ok().unwrap();
        assert_eq!(
            (keys(&own.kept), own.config.listen.port()),
            (vec!["listen"], 4000)
        );
        let passed = Running::new(true).read(&without).candidate.ok().unwrap();
        assert_eq!(
            (keys(&passed.kept), passed.config.listen.port()),
            (vec![], 4000)
        );
        let changed = Running::new(true)
            .read(&text("listen = '127.0.0.1:5000'", ""))
            .candidate
            .ok()
            .unwrap();
        assert_eq!(keys(&changed.kept), ["listen"]);
    }

    /// J9, J10: errors have file and line. The versions of the files are known as soon as their
    /// names are.
    #[test]
    fn an_invalid_file_is_located() {
        let running = Running::new(false);
        let missing = Candidate::read(&running.source);
        assert!(missing.versions.is_none());
        let text_of = |reading: &Reading| {
            reading
                .candidate
                .as_ref()
                .err()
                .map(ToString::to_string)
                .unwrap_or_default()
        };
        assert!(
            text_of(&missing).contains("does not exist"),
            "{}",
            text_of(&missing)
        );
        let invalid = running.read(&text(LISTEN, "[limits]\nmax_body = 1"));
        assert!(invalid.versions.is_some());
        let error = text_of(&invalid);
        assert!(error.contains("portcullis.toml:8"), "{error}");
        assert!(error.contains("limits.max_body"), "{error}");
        assert!(running.read(&text(LISTEN, "")).candidate.is_ok());
    }
}
