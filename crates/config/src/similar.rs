//! Suggestions: the known name that is most similar to a written one.

/// The most typing errors of a name.
const MAX_ERRORS: usize = 2;
/// The similarity from which a name is suggested in place of another one, from 0 to 1.
const SIMILAR: f64 = 0.8;

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

/// Returns the known key that was meant by the written one: it has another spelling, typing errors,
/// other words for the same thing, such as `jwks_url` for `jwks_uri`, or the words in another
/// order.
///
/// A key that only begins alike is another one: `required_scopes` is not suggested for
/// `required_roles`.
pub(super) fn intended_key<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let words = words(written);
    let closest = |is_meant: &dyn Fn(&[String]) -> bool| {
        let meant = known
            .iter()
            .copied()
            .filter(|name| is_meant(&self::words(name)));
        meant.min_by_key(|name| strsim::osa_distance(written, name))
    };
    // One word alone is ambiguous.
    let has_several = words.len() > 1;
    closest(&|name| words == name)
        .or_else(|| closest(&|name| has_several && canonical(&words) == canonical(name)))
        .or_else(|| closest(&|name| has_typing_errors(&words, name)))
        .or_else(|| closest(&|name| has_several && sorted(&words) == sorted(name)))
        .or_else(|| closest(&|name| has_several && without_fillers(&words) == name))
}

/// Returns the words of a name in lower case and in the singular.
pub(super) fn words(name: &str) -> Vec<String> {
    let name = snake_case(name);
    let words = name.split(['_', '.', ' ']).filter(|word| !word.is_empty());
    words.map(singular).collect()
}

/// Returns a name in lower case, with underscores between its words.
pub(super) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    let mut after_lower_case = false;
    for character in name.chars() {
        if character.is_uppercase() && after_lower_case {
            snake.push('_');
        }
        after_lower_case = character.is_lowercase();
        match character {
            '-' => snake.push('_'),
            other => snake.extend(other.to_lowercase()),
        }
    }
    snake
}

fn singular(word: &str) -> String {
    const SHORTEST: usize = 4;
    match (word.strip_suffix("ies"), word.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) if word.len() >= SHORTEST && !stem.ends_with('s') => stem.to_owned(),
        _ => word.to_owned(),
    }
}

/// Returns the words with the first of each list of words for the same thing.
fn canonical(words: &[String]) -> Vec<&str> {
    const EQUAL: [&[&str]; 8] = [
        &["allowed", "allow", "permitted"],
        &["uri", "url", "endpoint"],
        &["file", "path"],
        &["address", "ip"],
        &["principal", "user"],
        &["lifetime", "ttl", "duration"],
        &["dir", "directory"],
        &["max", "maximum"],
    ];
    let first = |word| {
        EQUAL
            .iter()
            .find(|words| words.contains(&word))
            .map_or(word, |words| words[0])
    };
    words.iter().map(|word| first(word.as_str())).collect()
}

/// Whether a name is a known one with typing errors: one from three characters on, and two from ten
/// on, and with no more errors in each word.
fn has_typing_errors(written: &[String], known: &[String]) -> bool {
    let is_close = |written: &str, known: &str| {
        let (length, of_known) = (written.chars().count(), known.chars().count());
        let most = match length.min(of_known) {
            0..=2 => 0,
            3..=9 => 1,
            _ => MAX_ERRORS,
        };
        length.abs_diff(of_known) <= most && strsim::osa_distance(written, known) <= most
    };
    let mut pairs = written.iter().zip(known);
    is_close(&written.concat(), &known.concat())
        && (written.len() != known.len() || pairs.all(|(written, known)| is_close(written, known)))
}

fn sorted(words: &[String]) -> Vec<&String> {
    let mut words: Vec<&String> = words.iter().collect();
    words.sort();
    words
}

/// Returns the words without those that change nothing in the meaning of a key.
fn without_fillers(words: &[String]) -> Vec<String> {
    const FILLERS: [&str; 11] = [
        "accepted",
        "addr",
        "address",
        "allowed",
        "expected",
        "list",
        "sec",
        "second",
        "supported",
        "valid",
        "value",
    ];
    let words = words
        .iter()
        .filter(|word| !FILLERS.contains(&word.as_str()));
    words.cloned().collect()
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
    let last_part = |name: &str| {
        let part = name.rsplit([':', '/', '.']).next().unwrap_or(name);
        part.chars().count()
    };
    let errors = strsim::osa_distance(&written.to_lowercase(), &name.to_lowercase());
    errors <= MAX_ERRORS && errors * 3 <= last_part(written).min(last_part(name))
}

/// Suggests the known name that is most similar to the written one. Empty if none is similar.
pub fn nearest(written: &str, known: &[&str]) -> String {
    similar(written, known, SIMILAR)
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
        assert_eq!(similar("LISTEN", &["listen"], 1.0), Some("listen"));
    }

    /// J9: a key is suggested for another spelling of it, and for no key of another meaning.
    #[test]
    fn only_intended_keys_have_a_suggestion() {
        let known = [
            "allowed_hosts",
            "algorithms",
            "base_url",
            "ca_file",
            "client_id",
            "endpoint",
            "idle_timeout",
            "introspection_endpoint",
            "jwks_uri",
            "key",
            "max_body",
            "per_address",
            "per_principal",
            "require_at_jwt",
            "required_scopes",
            "sessions",
            "trusted_proxies",
        ];
        for (written, meant) in [
            ("jwks_endpoint", "jwks_uri"),
            ("introspection-url", "introspection_endpoint"),
            ("introspection_uri", "introspection_endpoint"),
            ("ca_path", "ca_file"),
            ("baseUrl", "base_url"),
            ("BASEURL", "base_url"),
            ("required_scope", "required_scopes"),
            ("requried_scopes", "required_scopes"),
            ("scopes_required", "required_scopes"),
            ("trusted_proxy", "trusted_proxies"),
            ("idle_timeout_seconds", "idle_timeout"),
            ("idletimout", "idle_timeout"),
            ("allowed_algorithms", "algorithms"),
            ("per_ip", "per_address"),
            ("per_user", "per_principal"),
            ("keys", "key"),
            ("session", "sessions"),
        ] {
            assert_eq!(intended_key(written, &known), Some(meant), "{written}");
        }
        for written in [
            "uri",
            "token_url",
            "",
            "_",
            "allowed_tools",
            "allowed_users",
            "allowed_ips",
            "required_roles",
            "required_claims",
            "client_ip",
            "max_connections",
            "idle",
            "timeout",
            "jwks_cache",
            "per_client",
            "kid",
            "versions",
        ] {
            assert_eq!(intended_key(written, &known), None, "{written}");
        }
    }
}
