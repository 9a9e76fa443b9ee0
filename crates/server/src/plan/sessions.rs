//! Sessions: validation of `[session]` and the keys of session identifiers.

use std::{fs, time::SystemTime};

use anyhow::{Context as _, bail, ensure};
use portcullis_endpoint::EndedSessionStatus;
use portcullis_session::{SessionKey, SessionKeys, SessionSettings};

use crate::config::{SecretSource, Session, Span};

/// The range of a session's idle timeout and lifetime.
const SHORTEST: Span = Span::secs(1);
const LONGEST: Span = Span::secs(30 * 24 * 60 * 60);

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
/// # Errors
/// Fails when a value is out of its range, or a key cannot be used. The message contains no part of a key.
pub(super) fn plan(configured: &Session) -> anyhow::Result<SessionPlan> {
    for (name, span) in [("idle_timeout", configured.idle_timeout), ("lifetime", configured.lifetime)] {
        ensure!((SHORTEST..=LONGEST).contains(&span), "session.{name} = \"{span}\" is outside {SHORTEST} to {LONGEST}");
    }
    for (name, count, most) in
        [("max_total", configured.max_total, 10_000_000), ("max_per_owner", configured.max_per_owner, 1_000_000)]
    {
        ensure!((1..=most).contains(&count), "session.{name} = {count} is outside 1 to {most}");
    }
    let key_sources = configured.keys.clone().map(KeySources);
    let keys = match &key_sources {
        Some(sources) => sources.load()?,
        None => SessionKey::random().context("the operating system returned no random bytes")?.into(),
    };
    let mut settings = SessionSettings::new(keys);
    settings.idle_timeout = configured.idle_timeout.0;
    settings.lifetime = configured.lifetime.0;
    settings.max_total = configured.max_total;
    settings.max_per_owner = configured.max_per_owner;
    let ended_status = match configured.ended_status {
        400 => EndedSessionStatus::BadRequest,
        404 => EndedSessionStatus::NotFound,
        other => bail!("session.ended_status = {other} is neither 400 nor 404"),
    };
    Ok(SessionPlan { settings, ended_status, key_sources })
}

impl KeySources {
    /// Reads the keys.
    ///
    /// # Errors
    /// Fails when a source cannot be read or has no key, a key is too short or duplicated, or there are too many. The
    /// message names the source and the line, and contains no part of a key.
    pub(crate) fn load(&self) -> anyhow::Result<SessionKeys> {
        let mut keys = Vec::new();
        for source in &self.0 {
            let text = source.read().context("session.keys")?;
            let before = keys.len();
            for (number, line) in text.secret().lines().enumerate() {
                let line = line.trim();
                if !line.is_empty() {
                    let key = SessionKey::derive(line.as_bytes());
                    keys.push(key.with_context(|| {
                        let number = number + 1;
                        format!("session.keys: {source}, line {number}: generate a key with `openssl rand -base64 32`")
                    })?);
                }
            }
            ensure!(
                keys.len() > before,
                "session.keys: {source} has no key; generate one with `openssl rand -base64 32`"
            );
        }
        SessionKeys::new(keys).context("session.keys")
    }

    /// Returns the modification times of the files among the sources.
    pub(crate) fn written(&self) -> Vec<Option<SystemTime>> {
        let modified = |source: &SecretSource| match source {
            SecretSource::File(file) => fs::metadata(file).and_then(|data| data.modified()).ok(),
            SecretSource::Env(_) => None,
        };
        self.0.iter().map(modified).collect()
    }
}

#[cfg(test)]
#[expect(clippy::result_large_err, reason = "figment's jail wants its own error")]
mod tests {
    use figment::Jail;

    use super::*;

    const ONE: &str = "one-one-one-one-one-one-one-one-one";
    const TWO: &str = "two-two-two-two-two-two-two-two-two";

    fn load(files: &[&str]) -> Result<SessionKeys, String> {
        let mut loaded = Err(String::new());
        Jail::expect_with(|jail| {
            let mut sources = Vec::new();
            for (number, text) in files.iter().enumerate() {
                jail.create_file(format!("keys-{number}"), text)?;
                sources.push(SecretSource::File(format!("keys-{number}").into()));
            }
            loaded = KeySources(sources).load().map_err(|error| format!("{error:#}"));
            Ok(())
        });
        loaded
    }

    /// E10: keys are read line by line from one file or several.
    #[test]
    fn keys_are_read_line_by_line() {
        assert!(load(&[ONE]).is_ok());
        assert!(load(&[&format!("\n{ONE}\r\n\n  {TWO}\n\n")]).is_ok());
        assert!(load(&[ONE, TWO]).is_ok());
    }

    /// E10, J6: the error names the source and line of an invalid key in one line and does not contain the key.
    #[test]
    fn invalid_keys_are_named_by_their_position() {
        for (files, named) in [
            (&[][..], "session.keys: the list of session keys is empty"),
            (&["\n \n"], "session.keys: the file keys-0 has no key"),
            (&[ONE, ""], "session.keys: the file keys-1 is empty"),
            (&[ONE, "hunter2"], "session.keys: the file keys-1, line 1: generate a key with"),
            (&[&format!("{ONE}\n\nhunter2\n")], "session.keys: the file keys-0, line 3: generate a key with"),
            (&[&ONE[..31]], "session.keys: the file keys-0, line 1"),
            (&[&format!("{ONE}\n{TWO}\n{ONE}")], "session.keys: a session key is listed twice"),
            (&[ONE, ONE], "session.keys: a session key is listed twice"),
        ] {
            let message = load(files).unwrap_err();
            assert!(message.starts_with(named), "{message}");
            assert!(
                !message.contains("hunter2") && !message.contains("one-one") && !message.contains('\n'),
                "{message}"
            );
        }
        let many: String = (0..17).map(|number| format!("{ONE}-{number}\n")).collect();
        assert!(load(&[&many]).unwrap_err().contains("more than 16"));
    }
}
