/// What a request is about beyond its method and path, as whoever judged its body puts it: a JSON-RPC method, and the
/// tool, prompt or resource that it names.
///
/// It is for logs and counters: texts from a client, each cut at [`MAX_BYTES`](Self::MAX_BYTES).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Both texts, so that a request costs one allocation.
    text: Box<str>,
    /// Where the target begins.
    split: Option<usize>,
}

impl Operation {
    /// How much of each text is kept, in bytes.
    pub const MAX_BYTES: usize = 1024;

    /// An operation, and what it acts on, where it names something.
    pub fn new(name: &str, target: Option<&str>) -> Self {
        let (name, target) = (cut(name), target.map(cut));
        let mut text = String::with_capacity(name.len() + target.map_or(0, str::len));
        text.push_str(name);
        text.push_str(target.unwrap_or_default());
        Self { text: text.into(), split: target.map(|_| name.len()) }
    }

    /// The method, such as `tools/call`.
    pub fn name(&self) -> &str {
        self.text.get(..self.split.unwrap_or(self.text.len())).unwrap_or_default()
    }

    /// What it acts on, such as the name of a tool.
    pub fn target(&self) -> Option<&str> {
        self.text.get(self.split?..)
    }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(Operation::MAX_BYTES)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J4: both texts come out as they went in, and a long one is cut between characters.
    #[test]
    fn both_texts_are_kept_and_bounded() {
        let plain = Operation::new("tools/call", Some("add"));
        assert_eq!((plain.name(), plain.target()), ("tools/call", Some("add")));
        let alone = Operation::new("ping", None);
        assert_eq!((alone.name(), alone.target()), ("ping", None));
        let empty = Operation::new("tools/call", Some(""));
        assert_eq!((empty.name(), empty.target()), ("tools/call", Some("")));
        let long = format!("{}\u{e9}b", "a".repeat(Operation::MAX_BYTES - 1));
        let long = Operation::new(&long, Some(&long));
        assert_eq!(long.name(), "a".repeat(Operation::MAX_BYTES - 1));
        assert_eq!(long.target(), Some(long.name()));
    }
}
