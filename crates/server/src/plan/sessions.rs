//! Sessions: validation of `[session]` and the keys of session identifiers.

use anyhow::{Context as _, anyhow, bail, ensure};
use portcullis_endpoint::EndedSessionStatus;
use portcullis_metadata::Secret;
use portcullis_session::{SessionKey, SessionKeys, SessionSettings};

use super::FileVersion;
use crate::config::{Diagnostic, Diagnostics, KeyPath, SecretSource, Session, Span};

/// The shortest idle timeout and lifetime.
const SHORTEST_TIMEOUT: Span = Span::secs(1);
/// The longest idle timeout and lifetime.
const LONGEST_TIMEOUT: Span = Span::secs(30 * 24 * 60 * 60);
/// The largest `max_total`.
const MOST_SESSIONS: usize = 10_000_000;
/// The largest `max_per_owner`.
const MOST_SESSIONS_OF_OWNER: usize = 1_000_000;
/// The maximum number of keys, as in [`SessionKeys`].
const MOST_KEYS: usize = 16;
/// How a key is generated.
const GENERATE: &str = "generate a key with `openssl rand -base64 32`";

/// The validated session settings.
pub(crate) struct SessionPlan {
    pub(crate) settings: SessionSettings,
    pub(crate) ended_status: EndedSessionStatus,
    /// `None` if no keys are configured.
    pub(crate) key_sources: Option<KeySources>,
}

/// The sources of the keys: environment variables and files with one key per line, the key of new identifiers first.
#[derive(Clone)]
pub(crate) struct KeySources(Vec<SecretSource>);

/// Validates `[session]` and reads the keys; without configured keys, generates one.
///
/// Adds an error for each value out of its range and for each unusable key. No error contains a part of a key. Returns `None`
/// if there is one.
pub(super) fn plan(configured: &Session, errors: &mut Diagnostics<'_>) -> Option<SessionPlan> {
    let times = [("idle_timeout", configured.idle_timeout), ("lifetime", configured.lifetime)];
    let times = times.map(|(name, span)| errors.take(name, check_timeout(name, span)));
    let counts = [
        ("max_total", configured.max_total, MOST_SESSIONS),
        ("max_per_owner", configured.max_per_owner, MOST_SESSIONS_OF_OWNER),
    ];
    let counts = counts.map(|(name, count, most)| errors.take(name, check_count(name, count, most)));
    let ended_status = errors.take("ended_status", ended_status(configured.ended_status));
    let key_sources = configured.keys.clone().map(KeySources);
    let keys = match &key_sources {
        Some(sources) => sources.load(errors),
        None => {
            let random = SessionKey::random().context("the operating system returned no random bytes");
            errors.take("keys", random).map(SessionKeys::from)
        }
    };
    times.into_iter().chain(counts).collect::<Option<()>>()?;
    let mut settings = SessionSettings::new(keys?);
    settings.idle_timeout = configured.idle_timeout.0;
    settings.lifetime = configured.lifetime.0;
    settings.max_total = configured.max_total;
    settings.max_per_owner = configured.max_per_owner;
    Some(SessionPlan { settings, ended_status: ended_status?, key_sources })
}

/// Returns warnings about settings that another one limits, unless they have their default.
pub(super) fn warnings(configured: &Session) -> Vec<Diagnostic> {
    let Session { idle_timeout, lifetime, max_total, max_per_owner, .. } = configured;
    let default = Session::default();
    let mut warnings = Vec::new();
    if idle_timeout > lifetime && *idle_timeout != default.idle_timeout {
        warnings.push(format!(
            "session.idle_timeout = \"{idle_timeout}\" has no effect, because every session ends after session.lifetime = \
             \"{lifetime}\"; make it shorter"
        ));
    }
    if max_per_owner > max_total && *max_per_owner != default.max_per_owner {
        warnings.push(format!(
            "session.max_per_owner = {max_per_owner} has no effect on sessions, because all owners together have at most \
             session.max_total = {max_total}; make it smaller, so that one owner cannot use all"
        ));
    }
    warnings.iter().map(|text| Diagnostic::new(&KeyPath::default(), text)).collect()
}

fn check_timeout(name: &str, span: Span) -> anyhow::Result<()> {
    ensure!(
        (SHORTEST_TIMEOUT..=LONGEST_TIMEOUT).contains(&span),
        "{name} = \"{span}\" is outside {SHORTEST_TIMEOUT} to {LONGEST_TIMEOUT}"
    );
    Ok(())
}

fn check_count(name: &str, count: usize, most: usize) -> anyhow::Result<()> {
    ensure!((1..=most).contains(&count), "{name} = {count} is outside 1 to {most}");
    Ok(())
}

fn ended_status(status: u16) -> anyhow::Result<EndedSessionStatus> {
    match status {
        400 => Ok(EndedSessionStatus::BadRequest),
        404 => Ok(EndedSessionStatus::NotFound),
        other => bail!("ended_status = {other} is neither 400 nor 404"),
    }
}

impl KeySources {
    /// Reads the keys.
    ///
    /// `errors` are those of `[session]`. Adds an error for each source that cannot be read or has no key, and for each key
    /// that is too short or repeated. It names the source and the line, and contains no part of a key. Stops at the first key
    /// after the sixteenth. Returns `None` if there is an error.
    pub(crate) fn load(&self, errors: &mut Diagnostics<'_>) -> Option<SessionKeys> {
        let mut list = KeyList::default();
        for source in &self.0 {
            let Some(text) = errors.take("keys", source.read()) else {
                list.is_valid = false;
                continue;
            };
            if list.add(source, &text, errors).is_err() {
                return None;
            }
        }
        if self.0.is_empty() {
            errors.add("keys", format!("the list of session keys is empty; name a file, and {GENERATE}"));
            return None;
        }
        if !list.is_valid {
            return None;
        }
        errors.take("keys", SessionKeys::new(list.keys.into_iter().map(|placed| placed.key)))
    }

    /// Returns the version of each source's file. `None` for an environment variable, and for a file whose metadata cannot be
    /// read.
    pub(crate) fn versions(&self) -> Vec<Option<FileVersion>> {
        self.0.iter().map(|source| FileVersion::of(source.file()?)).collect()
    }
}

/// The keys that were read so far.
struct KeyList<'a> {
    keys: Vec<PlacedKey<'a>>,
    /// The number of lines with a key, even if it cannot be used.
    lines: usize,
    is_valid: bool,
}

/// A key and its place.
struct PlacedKey<'a> {
    key: SessionKey,
    source: &'a SecretSource,
    line: usize,
}

/// There are too many keys.
struct Full;

impl Default for KeyList<'_> {
    fn default() -> Self {
        Self { keys: Vec::new(), lines: 0, is_valid: true }
    }
}

impl<'a> KeyList<'a> {
    /// Adds the keys of a source.
    fn add(&mut self, source: &'a SecretSource, text: &Secret, errors: &mut Diagnostics<'_>) -> Result<(), Full> {
        let before = self.lines;
        let lines = text.secret().lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty());
        for (text, line) in lines {
            self.lines += 1;
            if self.lines > MOST_KEYS {
                let fix = "remove those whose sessions have ended";
                errors
                    .add("keys", format!("{source}, line {line}: there are more than {MOST_KEYS} session keys; {fix}"));
                return Err(Full);
            }
            match self.key(text) {
                Ok(key) => self.keys.push(PlacedKey { key, source, line }),
                Err(error) => {
                    errors.add("keys", format!("{source}, line {line}: {error}"));
                    self.is_valid = false;
                }
            }
        }
        if self.lines == before {
            errors.add("keys", format!("{source} has no key; {GENERATE}"));
            self.is_valid = false;
        }
        Ok(())
    }

    /// Returns the key of a line.
    ///
    /// # Errors
    /// Fails when it is too short or listed before.
    fn key(&self, text: &str) -> anyhow::Result<SessionKey> {
        let key = SessionKey::derive(text.as_bytes()).map_err(|error| anyhow!("{error}; {GENERATE}"))?;
        // A list of two keys is unusable only if they are the same.
        let is_same = |earlier: &&PlacedKey<'_>| SessionKeys::new([earlier.key.clone(), key.clone()]).is_err();
        if let Some(PlacedKey { source, line, .. }) = self.keys.iter().find(is_same) {
            bail!("a session key is listed twice; remove it here or in {source}, line {line}");
        }
        Ok(key)
    }
}

#[cfg(test)]
#[expect(clippy::result_large_err, reason = "figment's jail wants its own error")]
mod tests {
    use std::time::Duration;

    use figment::Jail;

    use super::*;

    const ONE: &str = "one-one-one-one-one-one-one-one-one";
    const TWO: &str = "two-two-two-two-two-two-two-two-two";

    fn load(files: &[&str]) -> Result<SessionKeys, Vec<Diagnostic>> {
        let mut loaded = Err(Vec::new());
        Jail::expect_with(|jail| {
            let mut sources = Vec::new();
            for (number, text) in files.iter().enumerate() {
                jail.create_file(format!("keys-{number}"), text)?;
                sources.push(SecretSource::File(format!("keys-{number}").into()));
            }
            loaded = Diagnostics::collect(|errors| KeySources(sources).load(&mut errors.table("session")));
            Ok(())
        });
        loaded
    }

    fn planned(change: impl FnOnce(&mut Session)) -> Result<SessionPlan, Vec<String>> {
        let mut session = Session::default();
        change(&mut session);
        Diagnostics::collect(|errors| plan(&session, &mut errors.table("session")))
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn span(seconds: u64) -> Span {
        Span(Duration::from_secs(seconds))
    }

    /// E9: every value has a range, and every value outside has its error.
    #[test]
    fn values_have_ranges() {
        for seconds in [1, 30 * 24 * 60 * 60] {
            assert!(
                planned(|session| (session.idle_timeout, session.lifetime) = (span(seconds), span(seconds))).is_ok()
            );
        }
        assert!(planned(|session| (session.max_total, session.max_per_owner) = (10_000_000, 1_000_000)).is_ok());
        for (status, expected) in [(400, EndedSessionStatus::BadRequest), (404, EndedSessionStatus::NotFound)] {
            assert_eq!(planned(|session| session.ended_status = status).ok().unwrap().ended_status, expected);
        }
        let errors = planned(|session| {
            session.idle_timeout = span(0);
            session.lifetime = span(30 * 24 * 60 * 60 + 1);
            session.max_total = 10_000_001;
            session.max_per_owner = 0;
            session.ended_status = 410;
            session.keys = Some(vec![]);
        });
        let expected = [
            "session.idle_timeout = \"0s\" is outside 1s to",
            "session.lifetime = ",
            "session.max_total = 10000001 is outside 1 to 10000000",
            "session.max_per_owner = 0 is outside 1 to 1000000",
            "session.ended_status = 410 is neither 400 nor 404",
            "session.keys: the list of session keys is empty",
        ];
        let errors = errors.err().unwrap();
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.starts_with(expected), "{error}");
        }
    }

    /// E9: a value that another one makes useless causes a warning, unless it is the default.
    #[test]
    fn useless_values_cause_warnings() {
        let warned = |change: fn(&mut Session)| {
            let mut session = Session::default();
            change(&mut session);
            warnings(&session).iter().map(|warning| warning.key.to_string()).collect::<Vec<_>>()
        };
        assert!(warned(|_| {}).is_empty());
        assert!(warned(|session| (session.lifetime, session.max_total) = (Span::secs(60), 1)).is_empty());
        assert_eq!(
            warned(|session| {
                (session.idle_timeout, session.lifetime) = (Span::secs(120), Span::secs(60));
                (session.max_per_owner, session.max_total) = (20, 10);
            }),
            ["session.idle_timeout", "session.max_per_owner"]
        );
    }

    /// E10: keys are read line by line from one file or several.
    #[test]
    fn keys_are_read_line_by_line() {
        assert!(load(&[ONE]).is_ok());
        assert!(load(&[&format!("\n{ONE}\r\n\n  {TWO}\n\n")]).is_ok());
        assert!(load(&[ONE, TWO]).is_ok());
    }

    /// E10, J6: each unusable key has an error, which names its source and line and does not contain the key.
    #[test]
    fn invalid_keys_are_named_by_their_position() {
        const SHORT: &str = "the secret of a session key must have at least 32 bytes; generate a key with";
        for (files, named) in [
            (&[][..], &["the list of session keys is empty"][..]),
            (&["\n \n"], &["the file keys-0 has no key; generate"]),
            (&[ONE, ""], &["the file keys-1 is empty"]),
            (&[ONE, "hunter2"], &[&format!("the file keys-1, line 1: {SHORT}")]),
            (
                &[&format!("hunter2\n{ONE}\n\nhunter2\n"), "", "hunter2"],
                &[
                    &format!("the file keys-0, line 1: {SHORT}"),
                    &format!("the file keys-0, line 4: {SHORT}"),
                    "the file keys-1 is empty",
                    &format!("the file keys-2, line 1: {SHORT}"),
                ],
            ),
            (&[&ONE[..31]], &["the file keys-0, line 1"]),
            (
                &[&format!("{ONE}\n{TWO}\n{ONE}")],
                &[
                    "the file keys-0, line 3: a session key is listed twice; remove it here or in the file keys-0, line 1",
                ],
            ),
            (
                &[ONE, ONE],
                &[
                    "the file keys-1, line 1: a session key is listed twice; remove it here or in the file keys-0, line 1",
                ],
            ),
        ] {
            let errors = load(files).unwrap_err();
            assert_eq!(errors.len(), named.len(), "{errors:#?}");
            for (error, named) in errors.iter().zip(named) {
                let text = &error.text;
                assert!(text.starts_with(&format!("session.keys: {named}")), "{text}");
                assert!(!text.contains("hunter2"), "{text}");
                assert!(!text.contains("one-one"), "{text}");
                assert!(!text.contains('\n'), "{text}");
            }
        }
    }

    /// E10: the number of keys is bounded, as that of [`SessionKeys`] is. Nothing is read after the limit.
    #[test]
    fn the_number_of_keys_is_bounded() {
        let many = |count: usize| (0..count).map(|number| format!("{ONE}-{number}\n")).collect::<String>();
        assert!(load(&[&many(MOST_KEYS)]).is_ok());
        let errors = load(&[TWO, &many(MOST_KEYS), "hunter2"]).unwrap_err();
        let expected = "session.keys: the file keys-1, line 16: there are more than 16 session keys; remove those";
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].text.starts_with(expected), "{errors:?}");
        assert_eq!(load(&[&"a\n".repeat(1000)]).unwrap_err().len(), MOST_KEYS + 1);
        let keys = |count: u8| SessionKeys::new((0..count).map(|number| SessionKey::new(number, &[number; 32])));
        assert!(keys(16).is_ok());
        assert!(keys(17).is_err());
    }

    /// E10: the version of a file changes when it is written. A variable and a missing file have none.
    #[test]
    fn written_files_have_other_versions() {
        Jail::expect_with(|jail| {
            let sources = ["keys", "missing"].map(|file| SecretSource::File(file.into()));
            let sources = KeySources(sources.into_iter().chain([SecretSource::Env("HOME".to_owned())]).collect());
            jail.create_file("keys", ONE)?;
            let before = sources.versions();
            assert!(matches!(before[..], [Some(_), None, None]));
            jail.create_file("keys", &format!("{ONE}\n{TWO}"))?;
            assert_ne!(sources.versions(), before);
            Ok(())
        });
    }
}
