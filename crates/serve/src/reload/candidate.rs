//! [`Candidate`]: the configuration that a reload reads, with its differences from the running one.

use std::mem;

use super::{ConfigSource, config_file_versions::ConfigFileVersions};
use portcullis_config::{
    Change, Config, ConfigErrors, Diagnostic, KeyPath, Located, changes, changes_that_need_restart,
    plan::Plan,
};

/// A valid configuration in place of the running one. Its plan can still fail to start: nothing is
/// built from it yet.
pub(super) struct Candidate {
    pub(super) config: Config,
    pub(super) plan: Plan,
    /// The warnings of the plan, with their places.
    pub(super) warnings: Vec<Located>,
    /// The differences from the running configuration.
    pub(super) changes: Vec<Change>,
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
    /// The candidate is an error when the configuration is invalid, with all errors that
    /// [`Plan::new`] finds, and when a change needs a restart, with an error for each such key.
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
        let candidate = match Self::new(loaded.config, source) {
            Ok(mut candidate) => {
                candidate.warnings = loaded
                    .places
                    .locate(mem::take(&mut candidate.plan.warnings));
                Ok(candidate)
            }
            Err(errors) => Err(ConfigErrors(loaded.places.locate(errors))),
        };
        Reading {
            versions: Some(versions),
            candidate,
        }
    }

    /// Validates a configuration that replaces the running one.
    fn new(config: Config, source: &ConfigSource) -> Result<Self, Vec<Diagnostic>> {
        let running = &source.config;
        let plan = Plan::new(&config)?;
        let mut errors = restart_errors(running, &config);
        if source.has_passed_socket && config.listen != running.listen {
            errors.push(diagnostic(&format!(
                "listen = \"{}\" is not the address of the socket that the service manager passed (LISTEN_FDS), which only \
                 the service manager can replace; change ListenStream= in the socket unit and restart the unit, or keep {}",
                config.listen, running.listen
            )));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let changes = changes(running, &config);
        Ok(Self {
            config,
            plan,
            warnings: Vec::new(),
            changes,
        })
    }
}

/// Returns an error for each change that needs a restart.
fn restart_errors(running: &Config, new: &Config) -> Vec<Diagnostic> {
    let error = |Change { key, old, new }: Change| {
        diagnostic(&format!(
            "{key} needs a restart to change from {old} to {new}; restart the server, or undo this change to reload the \
             others"
        ))
    };
    changes_that_need_restart(running, new)
        .into_iter()
        .map(error)
        .collect()
}

fn diagnostic(message: &str) -> Diagnostic {
    Diagnostic::new(&KeyPath::default(), message)
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
        let source = ConfigSource {
            file: "portcullis.toml".into(),
            overrides: Overrides::default(),
            load: |file, overrides| load(file, overrides).map_err(all_errors),
            config: from_text(running).unwrap(),
            has_passed_socket: false,
        };
        let candidate = Candidate::new(from_text(new).unwrap(), &source);
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

    /// J10: a change that needs a restart rejects all others, and is named with both values.
    #[test]
    fn changes_that_need_a_restart_are_named() {
        let new = text(
            "workers = 3\nstate_dir = 'off'\nshutdown_timeout = '1s'",
            "",
        );
        let errors = candidate(&new, &text("workers = 2", "")).err().unwrap();
        assert_eq!(errors.len(), 2, "{errors:#?}");
        let expected = [
            "workers needs a restart to change from 2 to 3",
            "state_dir needs a restart to change from",
        ];
        assert_all_found(&errors, &expected);
    }

    /// J10: the addresses of listeners are changed with everything else.
    #[test]
    fn addresses_are_changed() {
        let new = text("listen = '127.0.0.1:5000'\nshutdown_timeout = '1s'", "");
        let candidate = candidate(&new, &text(LISTEN, "")).ok().unwrap();
        assert_eq!(keys(&candidate.changes), ["listen", "shutdown_timeout"]);
        assert_eq!(candidate.plan.listen.port(), 5000);
    }

    /// D1, J10: rules about the address that the server listens on are checked with the new one.
    #[test]
    fn the_new_address_is_checked() {
        let running = text(LISTEN, "");
        let errors = candidate(&text("listen = '0.0.0.0:4000'", ""), &running)
            .err()
            .unwrap();
        assert_all_found(&errors, &["resource[0].auth"]);
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

    /// J10: a socket that was passed stays, whether `listen` names it or not. It cannot be
    /// replaced.
    #[test]
    fn a_passed_socket_stays() {
        let without = text("", "");
        let own = Running::new(false).read(&without).candidate.ok().unwrap();
        assert_eq!(
            (keys(&own.changes), own.config.listen.port()),
            (vec!["listen"], 3000)
        );
        let passed = Running::new(true).read(&without).candidate.ok().unwrap();
        assert_eq!(
            (keys(&passed.changes), passed.config.listen.port()),
            (vec![], 4000)
        );
        let changed = Running::new(true).read(&text("listen = '127.0.0.1:5000'", ""));
        let error = changed.candidate.err().unwrap().to_string();
        for expected in ["portcullis.toml:2: listen", "LISTEN_FDS", "ListenStream="] {
            assert!(error.contains(expected), "{error}");
        }
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
        let valid = running.read(&text(LISTEN, "")).candidate.ok().unwrap();
        let places: Vec<String> = valid.warnings.iter().map(Located::place).collect();
        let expected = [1, 5].map(|line| format!("{}:{line}", running.source.file.display()));
        assert_eq!(places, expected);
    }
}
