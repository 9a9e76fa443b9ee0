//! [`KeyPath`]: where a key is in the configuration.

use std::fmt;

use super::toml_text;

/// The path of a key, written as `issuer[0].algorithms`. The empty path is the whole configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPath(Vec<Segment>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A key of a table.
    Name(String),
    /// A position in an array.
    Index(usize),
}

impl KeyPath {
    /// Reads a path as it is written in messages: names without quotes, dots, and positions in
    /// brackets.
    pub fn parse(text: &str) -> Self {
        let parts = text
            .split(['.', '['])
            .map(|part| part.trim_end_matches(']'))
            .filter(|part| !part.is_empty());
        Self::from_names(parts)
    }

    /// The path with these names. A number is a position in an array.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let segment = |name: &str| match name.parse() {
            Ok(position) => Segment::Index(position),
            Err(_) => Segment::Name(name.to_owned()),
        };
        Self(names.into_iter().map(segment).collect())
    }

    /// The path of a key in this table.
    pub fn name(&self, name: &str) -> Self {
        self.with(Segment::Name(name.to_owned()))
    }

    /// The path of an item of this array.
    pub fn index(&self, position: usize) -> Self {
        self.with(Segment::Index(position))
    }

    /// This path, followed by another one.
    pub fn join(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The table or array that contains it; `None` for the whole configuration.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// The names and positions in the path, from the outermost table on.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The names in the path, without positions.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Name(name) => Some(name.as_str()),
            Segment::Index(_) => None,
        })
    }

    /// The name of its table in a header: `issuer.jwks` for `issuer[0].jwks`.
    pub fn header(&self) -> String {
        self.names()
            .map(toml_text::key)
            .collect::<Vec<_>>()
            .join(".")
    }

    /// Whether it is this path, or in this table or array.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether it is the path of the whole configuration.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Name(name) => {
                    let dot = if position == 0 { "" } else { "." };
                    write!(f, "{dot}{}", toml_text::key(name))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back() {
        for text in [
            "",
            "listen",
            "issuer[0].algorithms",
            "resource[1].rule[2].claims[0].claim",
            "limits.max_body",
        ] {
            assert_eq!(KeyPath::parse(text).to_string(), text);
        }
        assert_eq!(
            KeyPath::from_names(["resource", "0", "scope_implies"]).to_string(),
            "resource[0].scope_implies"
        );
        let quoted = KeyPath::parse("resource[0].scope_implies").name("mcp:tools");
        assert_eq!(
            quoted.to_string(),
            "resource[0].scope_implies.\"mcp:tools\""
        );
    }

    #[test]
    fn paths_contain_others() {
        let path = KeyPath::parse("issuer[0].jwks.cooldown");
        assert!(path.starts_with(&KeyPath::parse("issuer[0]")));
        assert!(path.starts_with(&KeyPath::default()));
        assert!(!path.starts_with(&KeyPath::parse("issuer[1]")));
        assert_eq!(path.parent(), Some(KeyPath::parse("issuer[0].jwks")));
        assert_eq!(KeyPath::default().parent(), None);
        assert_eq!(
            path.names().collect::<Vec<_>>(),
            ["issuer", "jwks", "cooldown"]
        );
        assert_eq!(path.header(), "issuer.jwks.cooldown");
        assert_eq!(
            KeyPath::parse("issuer")
                .index(0)
                .name("jwks")
                .join(&KeyPath::parse("cooldown")),
            path
        );
    }
}
