//! [`Operation`]: what a request asks for, for logs and metrics.

/// What the body of a request asks for: a JSON-RPC method, and the tool, prompt or resource that it
/// names.
///
/// It is for logs and metrics. The strings come from the client and are truncated to
/// [`MAX_BYTES`](Self::MAX_BYTES). At most [`MAX_ADDITIONAL_TARGETS`](Self::MAX_ADDITIONAL_TARGETS)
/// targets are kept in addition to the first.
///
/// ```
/// use portcullis_guard::Operation;
///
/// let call = Operation::new("tools/call", Some("add")).with_additional_targets(["multiply"].iter());
/// assert_eq!((call.name(), call.target(), call.tool()), ("tools/call", Some("add"), Some("add")));
/// assert_eq!(call.target_count(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The name and the target in one allocation.
    text: Box<str>,
    /// The position where the target starts.
    split: Option<usize>,
    /// Rarely present.
    additional: Option<Box<AdditionalTargets>>,
}

/// The targets after the first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AdditionalTargets {
    targets: Vec<Box<str>>,
    count: usize,
}

impl Operation {
    /// The number of bytes that are kept of each string.
    pub const MAX_BYTES: usize = 1024;
    /// The number of targets that are kept in addition to the first. All of them are counted.
    pub const MAX_ADDITIONAL_TARGETS: usize = 15;

    /// Creates an operation with its first target, if it has one.
    pub fn new(name: &str, target: Option<&str>) -> Self {
        let name = truncate(name);
        let target = target.map(truncate);
        let mut text = String::with_capacity(name.len() + target.map_or(0, str::len));
        text.push_str(name);
        text.push_str(target.unwrap_or_default());
        Self {
            text: text.into(),
            split: target.map(|_| name.len()),
            additional: None,
        }
    }

    /// Adds the targets after the first.
    #[must_use]
    pub fn with_additional_targets<T: AsRef<str>>(
        mut self,
        targets: impl Iterator<Item = T>,
    ) -> Self {
        let mut additional = AdditionalTargets {
            targets: Vec::new(),
            count: 0,
        };
        for target in targets {
            if additional.targets.len() < Self::MAX_ADDITIONAL_TARGETS {
                additional.targets.push(truncate(target.as_ref()).into());
            }
            additional.count += 1;
        }
        self.additional = (additional.count > 0).then(|| Box::new(additional));
        self
    }

    /// Returns the method, such as `tools/call`.
    pub fn name(&self) -> &str {
        self.text
            .get(..self.split.unwrap_or(self.text.len()))
            .unwrap_or_default()
    }

    /// Returns the first target, such as the name of a tool.
    pub fn target(&self) -> Option<&str> {
        self.text.get(self.split?..)
    }

    /// Returns the name of the called tool: the first target of `tools/call`.
    pub fn tool(&self) -> Option<&str> {
        self.target().filter(|_| self.name() == "tools/call")
    }

    /// Returns the targets after the [first](Self::target) that are kept.
    pub fn additional_targets(&self) -> impl Iterator<Item = &str> {
        self.additional
            .iter()
            .flat_map(|additional| &additional.targets)
            .map(|target| &**target)
    }

    /// Returns the number of targets, including those that are not kept.
    pub fn target_count(&self) -> usize {
        usize::from(self.split.is_some())
            + self
                .additional
                .as_ref()
                .map_or(0, |additional| additional.count)
    }
}

/// Truncates a string to [`Operation::MAX_BYTES`], between two characters.
fn truncate(text: &str) -> &str {
    text.get(..text.floor_char_boundary(Operation::MAX_BYTES))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J4: name and target are unchanged; long ones are truncated between characters.
    #[test]
    fn both_texts_are_kept_and_bounded() {
        let plain = Operation::new("tools/call", Some("add"));
        assert_eq!(plain.name(), "tools/call");
        assert_eq!(plain.target(), Some("add"));
        let prompt = Operation::new("prompts/get", Some("add"));
        assert_eq!(plain.tool(), Some("add"));
        assert_eq!(prompt.tool(), None);

        let alone = Operation::new("ping", None);
        assert_eq!(alone.name(), "ping");
        assert_eq!(alone.target(), None);
        let empty = Operation::new("tools/call", Some(""));
        assert_eq!(empty.name(), "tools/call");
        assert_eq!(empty.target(), Some(""));

        let long = format!("{}\u{e9}b", "a".repeat(Operation::MAX_BYTES - 1));
        let long = Operation::new(&long, Some(&long));
        assert_eq!(long.name(), "a".repeat(Operation::MAX_BYTES - 1));
        assert_eq!(long.target(), Some(long.name()));
    }

    /// J4: additional targets are kept up to a bound and counted beyond it.
    #[test]
    fn additional_targets_are_kept_and_counted() {
        let plain = Operation::new("tools/call", Some("add"));
        assert_eq!(plain.additional_targets().count(), 0);
        assert_eq!(plain.target_count(), 1);
        assert_eq!(
            plain
                .clone()
                .with_additional_targets(std::iter::empty::<&str>()),
            plain
        );
        assert_eq!(Operation::new("ping", None).target_count(), 0);
        let several = plain.with_additional_targets(["a", "b"].iter());
        assert_eq!(
            several.additional_targets().collect::<Vec<_>>(),
            vec!["a", "b"]
        );
        assert_eq!(several.target_count(), 3);
        let long = "a".repeat(Operation::MAX_BYTES + 1);
        let many = Operation::new("subscriptions/listen", Some("a"))
            .with_additional_targets((0..999).map(|_| &long));
        assert_eq!(
            many.additional_targets().count(),
            Operation::MAX_ADDITIONAL_TARGETS
        );
        assert_eq!(many.target_count(), 1000);
        assert!(
            many.additional_targets()
                .all(|target| target.len() == Operation::MAX_BYTES)
        );
    }
}
