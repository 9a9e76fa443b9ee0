//! Suggestions: the known name that is most similar to a written one.

/// Returns the known name that is most similar to the written one, if the similarity is at least
/// `least`, from 0 to 1. Upper and lower case are not distinguished.
pub(super) fn similar<'a>(written: &str, known: &[&'a str], least: f64) -> Option<&'a str> {
    let written = written.to_lowercase();
    let likeness = |name: &&'a str| strsim::jaro_winkler(&written, &name.to_lowercase());
    let best = known
        .iter()
        .copied()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= least).then_some(best)
}

/// Suggests the known name that the written one is in another spelling: with other letter case, or
/// with or without hyphens and underscores. Empty if there is none.
pub(super) fn respelled(written: &str, known: &[&str]) -> String {
    let letters = |name: &str| -> String {
        let letters = name.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    known
        .iter()
        .find(|name| letters(name) == letters(written))
        .map(|name| format!("did you mean `{name}`? "))
        .unwrap_or_default()
}

/// Returns the known name that differs from the written one only by other words for the same thing,
/// such as `jwks_url` for `jwks_uri`. Only for names of several words: one word alone is ambiguous.
pub(super) fn reworded<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let words = |name: &str| -> Vec<String> {
        let words = name.split(['_', '-']).map(str::to_lowercase);
        words.map(|word| canonical(&word).to_owned()).collect()
    };
    let written = words(written);
    let mut known = known.iter().copied();
    known.find(|name| written.len() > 1 && words(name) == written)
}

/// Returns the first of the words with the meaning of this one; the word itself if it has no
/// others.
fn canonical(word: &str) -> &str {
    const EQUAL: [&[&str]; 2] = [&["uri", "url", "endpoint"], &["file", "path"]];
    let equal = EQUAL.iter().find(|words| words.contains(&word));
    equal.map_or(word, |words| words[0])
}

/// Suggests the known scope of which the written one is a misspelling. Empty if there is none: a
/// scope that only begins alike can be another, weaker one.
pub(super) fn intended_scope(written: &str, known: &[&str]) -> String {
    known
        .iter()
        .find(|name| is_misspelling(written, name))
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// Whether the names differ by one typing error for each three characters of their last parts, and
/// by two at most.
fn is_misspelling(written: &str, name: &str) -> bool {
    const MAX_ERRORS: usize = 2;
    let last_part = |name: &str| {
        let part = name.rsplit([':', '/', '.']).next().unwrap_or(name);
        part.chars().count()
    };
    let errors = strsim::osa_distance(&written.to_lowercase(), &name.to_lowercase());
    errors <= MAX_ERRORS && errors * 3 <= last_part(written).min(last_part(name))
}

/// Suggests the known name that is most similar to the written one.
pub fn nearest(written: &str, known: &[&str]) -> String {
    similar(written, known, 0.0)
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: a scope is suggested for a misspelling of it, and for no other scope.
    #[test]
    fn only_misspelled_scopes_have_a_suggestion() {
        let known = ["mcp:tools", "mcp:admin", "read", "r", "v1"];
        for (written, intended) in [
            ("mcp:adimn", "mcp:admin"),
            ("mcp:admins", "mcp:admin"),
            ("mpc:tools", "mcp:tools"),
            ("mcp_tools", "mcp:tools"),
            ("MCP:Tools", "mcp:tools"),
            ("raed", "read"),
        ] {
            let expected = format!("; did you mean `{intended}`?");
            assert_eq!(intended_scope(written, &known), expected, "{written}");
        }
        for written in ["mcp:write", "mcp:adm", "mcp:to", "w", "v2", "write", ""] {
            assert_eq!(intended_scope(written, &known), "", "{written}");
        }
        assert_eq!(intended_scope("mcp:adimn", &["mcp:tools"]), "");
    }

    /// J9: another spelling is no other name.
    #[test]
    fn other_spellings_are_recognized() {
        let known = ["RS256", "ES256", "EdDSA"];
        for (written, meant) in [("es256", "ES256"), ("RS-256", "RS256"), ("eddsa", "EdDSA")] {
            assert_eq!(
                respelled(written, &known),
                format!("did you mean `{meant}`? ")
            );
        }
        for written in ["HS256", "none", "", "ES25"] {
            assert_eq!(respelled(written, &known), "", "{written}");
        }
        let known = ["jwks_uri", "introspection_endpoint", "endpoint", "ca_file"];
        for (written, meant) in [
            ("jwks_endpoint", "jwks_uri"),
            ("introspection-url", "introspection_endpoint"),
            ("introspection_uri", "introspection_endpoint"),
            ("ca_path", "ca_file"),
        ] {
            assert_eq!(reworded(written, &known), Some(meant), "{written}");
        }
        for written in ["uri", "token_url", ""] {
            assert_eq!(reworded(written, &known), None, "{written}");
        }
        assert_eq!(similar("LISTEN", &["listen"], 1.0), Some("listen"));
    }
}
