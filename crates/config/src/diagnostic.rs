use super::{KeyPath, schema};

/// An error or a warning about a key, with the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The key. The empty path if it is about the whole configuration.
    pub key: KeyPath,
    /// One line that begins with the key.
    pub text: String,
}

impl Diagnostic {
    /// A message about `key`, or about the key in it with which the message begins. The name can
    /// leave out the tables around it: in `issuer[0]`, the message
    /// `algorithms = [] accepts no token` is about `issuer[0].algorithms`.
    pub fn new(key: &KeyPath, message: &str) -> Self {
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        // The parser's word for a text that is no absolute URL, which the message says already.
        let relative = format!(": {}", url::ParseError::RelativeUrlWithoutBase);
        let message = message.replace(&relative, "");
        let (start, rest) =
            message.split_at(message.find(|c: char| !is_key(c)).unwrap_or(message.len()));
        // A sentence can end with a dot, and `key: text` has a colon after the key.
        let named = if rest.starts_with([' ', ':']) {
            KeyPath::parse(start)
        } else {
            KeyPath::default()
        };
        if named.is_root() {
            return Self::about(key, &message);
        }
        // The message names the key from the table `key` on, or from one around it.
        let mut around = Some(key.clone());
        while let Some(table) = around {
            let about = table.join(&named);
            let is_key = schema::has_fixed_name(&about)
                || (named.segments().len() > 1 && schema::is_known(&about));
            if about.starts_with(key) && is_key {
                return Self {
                    text: format!("{about}{rest}"),
                    key: about,
                };
            }
            around = table.parent();
        }
        Self::about(key, &message)
    }

    /// Returns several diagnostics in one line.
    pub fn joined(found: &[Self]) -> String {
        found
            .iter()
            .map(|one| one.text.as_str())
            .collect::<Vec<_>>()
            .join(" | ")
    }

    fn about(key: &KeyPath, message: &str) -> Self {
        let text = if key.is_root() {
            message.to_owned()
        } else {
            format!("{key}: {message}")
        };
        Self {
            key: key.clone(),
            text,
        }
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Diagnostic {}

fn is_key(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-.[]".contains(character)
}

/// Collects diagnostics about the keys of one table.
pub(crate) struct Diagnostics<'a> {
    table: KeyPath,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a> Diagnostics<'a> {
    /// Returns the value of `validate`, or all errors that it adds. Fails if it adds an error or
    /// returns no value.
    pub(crate) fn collect<T>(
        validate: impl FnOnce(&mut Diagnostics<'_>) -> Option<T>,
    ) -> Result<T, Vec<Diagnostic>> {
        let mut found = Vec::new();
        match validate(&mut Diagnostics::new(&mut found)) {
            Some(value) if found.is_empty() => Ok(value),
            _ => Err(found),
        }
    }

    /// Collects for the whole configuration.
    pub(crate) fn new(found: &'a mut Vec<Diagnostic>) -> Self {
        Self {
            table: KeyPath::default(),
            found,
        }
    }

    /// Collects for a table in this one, such as `issuer[0]`.
    pub(crate) fn table(&mut self, key: &str) -> Diagnostics<'_> {
        Diagnostics {
            table: self.table.join(&KeyPath::parse(key)),
            found: self.found,
        }
    }

    /// Adds a message about a key of this table, or, with an empty key, about the table.
    pub(crate) fn add(&mut self, key: &str, message: impl AsRef<str>) {
        let key = self.table.join(&KeyPath::parse(key));
        self.found.push(Diagnostic::new(&key, message.as_ref()));
    }

    /// Returns the value, or adds the error.
    pub(crate) fn take<T>(
        &mut self,
        key: &str,
        result: Result<T, impl Into<anyhow::Error>>,
    ) -> Option<T> {
        result
            .map_err(|error| self.add(key, with_fix_last(&error.into())))
            .ok()
    }

    /// Returns the values, or adds each error.
    pub(crate) fn take_all<T, E: Into<anyhow::Error>>(
        &mut self,
        key: &str,
        results: impl IntoIterator<Item = Result<T, E>>,
    ) -> Option<Vec<T>> {
        let taken: Vec<Option<T>> = results
            .into_iter()
            .map(|result| self.take(key, result))
            .collect();
        taken.into_iter().collect()
    }
}

/// The error with its causes. A fix, which begins after a semicolon, stays at the end.
fn with_fix_last(error: &anyhow::Error) -> String {
    let text = error.to_string();
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    match text.split_once("; ").filter(|_| !causes.is_empty()) {
        Some((problem, fix)) => format!("{problem}: {}; {fix}", causes.join(": ")),
        None => format!("{error:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(key: &str, message: &str) -> (String, String) {
        let Diagnostic { key, text } = Diagnostic::new(&KeyPath::parse(key), message);
        (key.to_string(), text)
    }

    /// J9: the key is that with which the message begins, if the configuration has it.
    #[test]
    fn the_key_is_in_the_message() {
        for (key, message, expected, text) in [
            (
                "issuer[0]",
                "algorithms = [] is empty",
                "issuer[0].algorithms",
                "issuer[0].algorithms = [] is empty",
            ),
            (
                "issuer[0]",
                "it is bad",
                "issuer[0]",
                "issuer[0]: it is bad",
            ),
            (
                "limits",
                "limits.max_body = 1 is low",
                "limits.max_body",
                "limits.max_body = 1 is low",
            ),
            (
                "",
                "session.keys: the file is empty",
                "session.keys",
                "session.keys: the file is empty",
            ),
            (
                "",
                "resource[0].rule[1].method = \"x\"",
                "resource[0].rule[1].method",
                "resource[0].rule[1].method = \"x\"",
            ),
            (
                "listen",
                "127.0.0.1 has no port",
                "listen",
                "listen: 127.0.0.1 has no port",
            ),
            (
                "issuer[0].leeway",
                "leeway = 5 is bad",
                "issuer[0].leeway",
                "issuer[0].leeway = 5 is bad",
            ),
            (
                "resource[0].upstream",
                "upstream.http: no",
                "resource[0].upstream.http",
                "resource[0].upstream.http: no",
            ),
            (
                "traces.headers",
                "traces.headers.x-api-key: no",
                "traces.headers.x-api-key",
                "traces.headers.x-api-key: no",
            ),
            (
                "listen",
                "well-known: no",
                "listen",
                "listen: well-known: no",
            ),
            ("", "algorithms are bad", "", "algorithms are bad"),
            ("resource[1]", "a\n b", "resource[1]", "resource[1]: a b"),
        ] {
            assert_eq!(
                new(key, message),
                (expected.to_owned(), text.to_owned()),
                "{message}"
            );
        }
    }

    #[test]
    fn the_fix_is_last() {
        let error = anyhow::anyhow!("relative").context("it is not a URL; write one");
        assert_eq!(
            with_fix_last(&error),
            "it is not a URL: relative; write one"
        );
        assert_eq!(with_fix_last(&anyhow::anyhow!("a").context("b")), "b: a");
    }

    /// J9: every error of a list is added.
    #[test]
    fn all_errors_of_a_list_are_added() {
        let parse = |texts: &[&str]| {
            let numbers = texts.iter().map(|text| text.parse::<u8>());
            Diagnostics::collect(|errors| errors.take_all("trusted_proxies", numbers))
        };
        assert_eq!(parse(&["1", "2"]), Ok(vec![1, 2]));
        assert_eq!(parse(&["a", "1", "b"]).unwrap_err().len(), 2);
        assert_eq!(Diagnostics::collect(|_| None::<()>), Err(vec![]));
        let kept = Diagnostics::collect(|errors| {
            errors.add("workers", "bad");
            Some(())
        });
        assert!(kept.is_err(), "a value with an error is no value");
    }

    #[test]
    fn tables_add_their_key() {
        let mut found = Vec::new();
        let mut diagnostics = Diagnostics::new(&mut found);
        assert_eq!(
            diagnostics
                .table("issuer[1]")
                .take("leeway", Err::<(), _>(anyhow::anyhow!("too long"))),
            None
        );
        assert_eq!(
            diagnostics.table("issuer[1]").take("leeway", anyhow::Ok(5)),
            Some(5)
        );
        assert_eq!(
            found,
            [Diagnostic::new(
                &KeyPath::parse("issuer[1].leeway"),
                "too long"
            )]
        );
    }
}
