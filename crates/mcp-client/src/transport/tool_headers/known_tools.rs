//! [`KnownTools`]: the stored annotations, bounded in number and size.

use std::collections::HashMap;

use super::annotations::AnnotatedParameter;

/// The tools that have annotated parameters.
#[derive(Default)]
pub(super) struct KnownTools {
    tools: HashMap<String, Vec<AnnotatedParameter>>,
    /// The sum of the tools' sizes.
    size: usize,
}

/// The maximum number of tools that are stored; the arguments of others are sent only in the body.
pub(super) const MAX_TOOLS: usize = 1000;
/// The maximum size of all stored tools, in bytes.
const MAX_SIZE: usize = 4 * 1024 * 1024;
/// The approximate size of a name or header in addition to its text, in bytes.
const OVERHEAD: usize = 64;

impl KnownTools {
    pub(super) fn parameters(&self, name: &str) -> Vec<AnnotatedParameter> {
        self.tools.get(name).cloned().unwrap_or_default()
    }

    /// Stores the parameters of a tool that is not stored, if there are any and there is capacity
    /// for them.
    pub(super) fn insert(&mut self, name: String, parameters: Vec<AnnotatedParameter>) {
        let size = size_of_tool(&name, &parameters);
        if parameters.is_empty() || self.tools.len() >= MAX_TOOLS || size > MAX_SIZE - self.size {
            return;
        }
        self.size += size;
        self.tools.insert(name, parameters);
    }

    /// Forgets a tool.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some((name, parameters)) = self.tools.remove_entry(name) {
            self.size -= size_of_tool(&name, &parameters);
        }
    }
}

fn size_of_tool(name: &str, parameters: &[AnnotatedParameter]) -> usize {
    let text = |text: &str| OVERHEAD + text.len();
    let of_parameter = |parameter: &AnnotatedParameter| {
        text(parameter.header.as_str())
            + parameter.path.iter().map(|name| text(name)).sum::<usize>()
    };
    text(name) + parameters.iter().map(of_parameter).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn the_size_is_bounded() {
        let mut known = KnownTools::default();
        let parameter = AnnotatedParameter {
            header: HeaderName::from_static("a"),
            path: vec!["x".repeat(100_000)],
        };
        for name in 0..100 {
            known.insert(name.to_string(), vec![parameter.clone()]);
        }
        assert_eq!(known.tools.len(), MAX_SIZE / 100_300);
        for name in 0..100 {
            known.remove(&name.to_string());
        }
        assert_eq!(known.size, 0);
        known.insert("none".into(), Vec::new());
        assert!(known.tools.is_empty());
    }
}
