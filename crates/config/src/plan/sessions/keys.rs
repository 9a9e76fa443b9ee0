//! [`KeySources`]: the keys of session identifiers.

use crate::{Diagnostic, Diagnostics, SecretSource};
use anyhow::{anyhow, bail};
use portcullis_metadata::Secret;
use portcullis_session::{SessionKey, SessionKeys};

use crate::plan::FileVersion;

/// How a key is generated.
const GENERATE: &str = "generate a key with `openssl rand -base64 32`";

/// The sources of the keys: environment variables and files with one key per line, the key of new
/// identifiers first.
#[derive(Clone)]
pub struct KeySources(pub(super) Vec<SecretSource>);

impl KeySources {
    /// Reads the keys again.
    ///
    /// # Errors
    /// Fails when a source cannot be read or has no key, or a key is too short or repeated, with an
    /// error for each. It names the source and the line, and contains no part of a key.
    pub fn load(&self) -> Result<SessionKeys, Vec<Diagnostic>> {
        Diagnostics::collect(|errors| self.collect(&mut errors.table("session")))
    }

    /// Reads the keys.
    ///
    /// `errors` are those of `[session]`. Adds an error for each source that cannot be read or has
    /// no key, and for each key that is too short or repeated. It names the source and the line,
    /// and contains no part of a key. Stops at the first key after the sixteenth. Returns `None` if
    /// there is an error.
    pub(super) fn collect(&self, errors: &mut Diagnostics<'_>) -> Option<SessionKeys> {
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
            errors.add(
                "keys",
                format!("the list of session keys is empty; name a file, and {GENERATE}"),
            );
            return None;
        }
        if !list.is_valid {
            return None;
        }
        errors.take(
            "keys",
            SessionKeys::new(list.keys.into_iter().map(|placed| placed.key)),
        )
    }

    /// Returns the version of each source's file. `None` for an environment variable, and for a
    /// file whose metadata cannot be read.
    pub fn versions(&self) -> Vec<Option<FileVersion>> {
        self.0
            .iter()
            .map(|source| FileVersion::of(source.file()?))
            .collect()
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
        Self {
            keys: Vec::new(),
            lines: 0,
            is_valid: true,
        }
    }
}

impl<'a> KeyList<'a> {
    fn add(
        &mut self,
        source: &'a SecretSource,
        text: &Secret,
        errors: &mut Diagnostics<'_>,
    ) -> Result<(), Full> {
        let before = self.lines;
        let lines = text
            .secret()
            .lines()
            .map(str::trim)
            .zip(1..)
            .filter(|(line, _)| !line.is_empty());
        for (text, line) in lines {
            self.lines += 1;
            if self.lines > SessionKeys::MAX {
                let fix = "remove those whose sessions have ended";
                errors.add(
                    "keys",
                    format!(
                        "{source}, line {line}: there are more than {} session keys; {fix}",
                        SessionKeys::MAX
                    ),
                );
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

    /// Returns the key of a line. Fails when it is too short or listed before.
    fn key(&self, text: &str) -> anyhow::Result<SessionKey> {
        let key =
            SessionKey::derive(text.as_bytes()).map_err(|error| anyhow!("{error}; {GENERATE}"))?;
        // A list of two keys is unusable only if they are the same.
        let is_same = |earlier: &&PlacedKey<'_>| {
            SessionKeys::new([earlier.key.clone(), key.clone()]).is_err()
        };
        if let Some(PlacedKey { source, line, .. }) = self.keys.iter().find(is_same) {
            bail!("a session key is listed twice; remove it here or in {source}, line {line}");
        }
        Ok(key)
    }
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "figment's jail wants its own error"
)]
mod tests {
    use figment::Jail;

    use super::*;
    use crate::Diagnostic;

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
            loaded = Diagnostics::collect(|errors| {
                KeySources(sources).collect(&mut errors.table("session"))
            });
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

    /// E10, J6: each unusable key has an error, which names its source and line and does not
    /// contain the key.
    #[test]
    fn invalid_keys_are_named_by_their_position() {
        const SHORT: &str =
            "the secret of a session key must have at least 32 bytes; generate a key with";
        for (files, named) in [
            (&[][..], &["the list of session keys is empty"][..]),
            (&["\n \n"], &["the file keys-0 has no key; generate"]),
            (&[ONE, ""], &["the file keys-1 is empty"]),
            (
                &[ONE, "hunter2"],
                &[&format!("the file keys-1, line 1: {SHORT}")],
            ),
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
                assert!(
                    text.starts_with(&format!("session.keys: {named}")),
                    "{text}"
                );
                assert!(!text.contains("hunter2"), "{text}");
                assert!(!text.contains("one-one"), "{text}");
                assert!(!text.contains('\n'), "{text}");
            }
        }
    }

    /// E10: the number of keys is bounded, as that of [`SessionKeys`] is. Nothing is read after the
    /// limit.
    #[test]
    fn the_number_of_keys_is_bounded() {
        let many = |count: usize| {
            (0..count)
                .map(|number| format!("{ONE}-{number}\n"))
                .collect::<String>()
        };
        assert!(load(&[&many(SessionKeys::MAX)]).is_ok());
        let errors = load(&[TWO, &many(SessionKeys::MAX), "hunter2"]).unwrap_err();
        let expected = "session.keys: the file keys-1, line 16: there are more than 16 session keys; remove those";
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].text.starts_with(expected), "{errors:?}");
        assert_eq!(
            load(&[&"a\n".repeat(1000)]).unwrap_err().len(),
            SessionKeys::MAX + 1
        );
        let keys = |count: u8| {
            SessionKeys::new((0..count).map(|number| SessionKey::new(number, &[number; 32])))
        };
        assert!(keys(16).is_ok());
        assert!(keys(17).is_err());
    }

    /// E10: the version of a file changes when it is written. A variable and a missing file have
    /// none.
    #[test]
    fn written_files_have_other_versions() {
        Jail::expect_with(|jail| {
            let sources = ["keys", "missing"].map(|file| SecretSource::File(file.into()));
            let sources = KeySources(
                sources
                    .into_iter()
                    .chain([SecretSource::Env("HOME".to_owned())])
                    .collect(),
            );
            jail.create_file("keys", ONE)?;
            let before = sources.versions();
            assert!(matches!(before[..], [Some(_), None, None]));
            jail.create_file("keys", &format!("{ONE}\n{TWO}"))?;
            assert_ne!(sources.versions(), before);
            Ok(())
        });
    }
}
