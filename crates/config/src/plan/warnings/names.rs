//! Names in rules that match nothing: other pattern languages, and methods without names.

mod fix;

use portcullis_endpoint::{MessageRule, NameGlob};
use portcullis_mcp::{Revisions, client_methods, has_target};

use fix::fix;

/// Characters of other pattern languages that neither names nor URIs (RFC 3986) have.
const STRANGE: &[char] = &['^', '|'];
/// Further ones that URIs and URI templates can have, but not the names that the MCP specification
/// recommends for tools:
/// <https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names>.
const STRANGE_IN_NAMES: &[char] = &['\\', '{', '}', '(', ')', '$', '[', ']', '?', '+', ','];
/// The characters besides letters and digits that names of tools have, and the wildcard.
const IN_TOOL_NAMES: &[char] = &['_', '-', '.', '/', '*'];
/// The only method that names a tool.
const TOOLS_CALL: &str = "tools/call";

/// Returns the warnings about the name of a rule. `key` is that of the rule.
pub(super) fn warnings(rule: &MessageRule, served: Revisions, key: &str) -> Vec<String> {
    let Some(name) = &rule.name else {
        return Vec::new();
    };
    let of_tools = (rule.method.as_ref()).is_some_and(|method| names_only_tools(method, served));
    let of_pattern = pattern_problem(name.as_str(), of_tools);
    let of_method = rule
        .method
        .as_ref()
        .filter(|method| has_no_names(method, served))
        .map(|method| {
            format!(
                "is in a rule for {:?}, whose messages name no tool, prompt, resource or task, so that the rule protects nothing; \
                 remove name, or write method = \"tools/call\"",
                method.as_str()
            )
        });
    of_pattern
        .or_else(|| dot_segment_problem(name.as_str()))
        .into_iter()
        .chain(of_method)
        .map(|problem| format!("{key}.name = {:?} {problem}", name.as_str()))
        .collect()
}

/// Whether the pattern matches methods of the served revisions, and only such without names.
fn has_no_names(method: &NameGlob, served: Revisions) -> bool {
    let mut matching = client_methods(served)
        .filter(|known| method.matches(known))
        .peekable();
    matching.peek().is_some() && !matching.any(has_target)
}

/// Whether the pattern matches methods of the served revisions with names, and all of these are
/// names of tools.
fn names_only_tools(method: &NameGlob, served: Revisions) -> bool {
    let mut with_names = client_methods(served)
        .filter(|known| method.matches(known) && has_target(known))
        .peekable();
    with_names.peek().is_some() && with_names.all(|known| known == TOOLS_CALL)
}

/// Returns the problem of a URI that no admitted message has.
fn dot_segment_problem(pattern: &str) -> Option<String> {
    let (_, path) = pattern.split_once("://")?;
    let is_dot_segment = |segment: &str| matches!(segment, "." | "..");
    path.split('/').any(is_dot_segment).then(|| {
        "has a `.` or `..` segment, and requests for such URIs get 400, so that the rule never applies; write the URI without it"
            .to_owned()
    })
}

/// Returns the problem of a pattern that looks like one of another language or a list of
/// alternatives. `of_tools` is whether it is for names of tools only.
fn pattern_problem(pattern: &str, of_tools: bool) -> Option<String> {
    let is_uri = !of_tools && pattern.contains(':');
    let is_strange = |character: &char| {
        STRANGE.contains(character)
            || (!is_uri && STRANGE_IN_NAMES.contains(character))
            || (of_tools && !is_in_tool_names(*character))
    };
    let mut found = String::new();
    for character in pattern.chars().filter(is_strange) {
        if !found.contains(character) {
            found.push(character);
        }
    }
    if found.is_empty() && !is_uri {
        found.push_str(foreign_part(pattern, of_tools).unwrap_or_default());
    }
    (!found.is_empty()).then(|| {
        format!(
            "has {found:?}, which is compared as ordinary text, so that the rule probably protects nothing; `*` is the only wildcard: {}",
            fix(pattern, of_tools)
        )
    })
}

/// Returns what is not part of a name although its characters are: what `*` is in a regular
/// expression, what is around one, and the method.
fn foreign_part(pattern: &str, of_tools: bool) -> Option<&'static str> {
    if pattern.contains("_.*") {
        return Some(".*");
    }
    if of_tools && is_between_slashes(pattern) {
        return Some("/");
    }
    let name = pattern.strip_prefix(TOOLS_CALL)?;
    (of_tools && name.starts_with('/')).then_some(TOOLS_CALL)
}

/// Whether names of tools have the character. Some servers use letters of other scripts.
fn is_in_tool_names(character: char) -> bool {
    character.is_alphanumeric() || IN_TOOL_NAMES.contains(&character)
}

fn is_between_slashes(pattern: &str) -> bool {
    pattern.len() > 1 && pattern.starts_with('/') && pattern.ends_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(pattern: &str) -> String {
        pattern_problem(pattern, false).unwrap_or_default()
    }

    /// B9: other pattern languages are named, with the rules to write.
    #[test]
    fn other_pattern_languages_are_named() {
        for (pattern, characters, fix) in [
            (
                "^(delete|drop)_.*$",
                "has \"^(|)$\", which",
                "write a rule with name = \"delete_*\", and another with name = \"drop_*\"",
            ),
            (
                "delete_*|drop_*",
                "has \"|\", which",
                "write a rule with name = \"delete_*\", and another with name = \"drop_*\"",
            ),
            (
                "{a,b,c}_x",
                "has \"{,}\", which",
                "name = \"a_x\", and another with name = \"b_x\", another with name = \"c_x\"",
            ),
            ("^admin_", "has \"^\", which", "write name = \"admin_*\""),
            ("^admin_.*", "has \"^\", which", "write name = \"admin_*\""),
            ("_delete$", "has \"$\", which", "write name = \"*_delete\""),
            (
                ".*_delete$",
                "has \"$\", which",
                "write name = \"*_delete\"",
            ),
            ("^drop$", "has \"^$\", which", "write name = \"drop\""),
            (
                "^(delete|drop)_",
                "has \"^(|)\", which",
                "name = \"delete_*\", and another with name = \"drop_*\"",
            ),
            (
                "^delete|drop",
                "has \"^|\", which",
                "name = \"delete*\", and another with name = \"drop*\"",
            ),
            (
                "^soft\u{ad}hyphen$",
                "has \"^$\", which",
                "write name = \"soft\\u00ADhyphen\"",
            ),
            ("admin_.*", "has \".*\", which", "write name = \"admin_*\""),
            ("admin_[a-z]", "has \"[]\", which", "one rule for each name"),
            (
                "file:///a*|file:///b*",
                "has \"|\", which",
                "name = \"file:///a*\", and another with name = \"file:///b*\"",
            ),
        ] {
            let problem = problem(pattern);
            assert!(problem.contains(characters), "{pattern}: {problem}");
            assert!(problem.contains(fix), "{pattern}: {problem}");
        }
    }

    /// B9: patterns that can match a name or a URI are not named.
    #[test]
    fn patterns_that_match_are_not_named() {
        for pattern in [
            "admin_*",
            "*",
            "config.*",
            "db/tables.drop",
            "my prompt",
            "https://a.example/x?y=(1)&z[]=$2",
            "file:///srv/*.*",
            "file:///{path}",
        ] {
            assert_eq!(problem(pattern), "", "{pattern}");
        }
    }

    /// B9: what no name of a tool has is named, in rules for tools only.
    #[test]
    fn patterns_that_match_no_tool_are_named() {
        for (pattern, characters, fix) in [
            (" admin_*", "has \" \"", "write name = \"admin_*\""),
            ("drop\t", "has \"\\t\"", "write name = \"drop\""),
            (
                "admin_* billing_*",
                "has \" \"",
                "with name = \"admin_*\", and another with name = \"billing_*\"",
            ),
            (
                "admin_*; billing_*",
                "has \"; \"",
                "with name = \"admin_*\", and another with name = \"billing_*\"",
            ),
            (
                "'admin_*', 'drop'",
                "has \"', \"",
                "with name = \"admin_*\", and another with name = \"drop\"",
            ),
            ("'admin_*'", "has \"'\"", "write name = \"admin_*\""),
            ("\"admin_*\"", "has \"\\\"\"", "write name = \"admin_*\""),
            ("“admin_*”", "has \"“”\"", "write name = \"admin_*\""),
            ("!read_*", "has \"!\"", "there is no negation"),
            ("~read_*", "has \"~\"", "there is no negation"),
            ("not read_*", "has \" \"", "there is no negation"),
            (
                "tools/call:admin_*",
                "has \":\"",
                "write name = \"admin_*\"",
            ),
            (
                "tools/call/admin_*",
                "has \"tools/call\"",
                "write name = \"admin_*\"",
            ),
            ("/admin_*/", "has \"/\"", "write name = \"admin_*\""),
            ("/^admin_/", "has \"^\"", "write name = \"admin_*\""),
            ("admin_%", "has \"%\"", "write name = \"admin_*\""),
            ("Delete File", "has \" \"", "write one rule for each name"),
            (
                "admin_*\u{200b}",
                "has \"\\u{200b}\"",
                "one rule for each name",
            ),
            ("/", "", ""),
            ("files/read.v1-x*", "", ""),
            ("größe_*", "", ""),
        ] {
            let problem = pattern_problem(pattern, true).unwrap_or_default();
            assert_eq!(
                problem.is_empty(),
                characters.is_empty(),
                "{pattern}: {problem}"
            );
            assert!(problem.contains(characters), "{pattern}: {problem}");
            assert!(problem.contains(fix), "{pattern}: {problem}");
        }
        for (method, is_named) in [
            ("tools/call", true),
            ("Tools/*", true),
            ("*", false),
            ("prompts/get", false),
            ("resources/read", false),
            ("x/own", false),
        ] {
            let mut rule = MessageRule::for_method(NameGlob::parse(method).unwrap());
            rule.name = Some(NameGlob::parse("my name").unwrap());
            let warnings = warnings(&rule, Revisions::ALL, "rule[0]");
            assert_eq!(!warnings.is_empty(), is_named, "{method}: {warnings:?}");
        }
    }

    /// B9, F12: a URI that is always rejected is named.
    #[test]
    fn dot_segments_are_named() {
        for pattern in ["file:///secret/../x", "file:///./secret/*", "note://a/.."] {
            let problem = dot_segment_problem(pattern).unwrap_or_default();
            assert!(problem.contains("get 400"), "{pattern}: {problem}");
        }
        for pattern in [
            "file:///srv/*.*",
            "file:///srv/.config",
            "a/../b",
            "note://..a/b",
        ] {
            assert_eq!(dot_segment_problem(pattern), None, "{pattern}");
        }
    }

    /// B9: a name beside methods without names is named.
    #[test]
    fn methods_without_names_are_named() {
        for (method, is_named) in [
            ("tools/list", true),
            ("Tools/List", true),
            ("*/list", true),
            ("tools/*", false),
            ("tools/call", false),
            ("resources/*", false),
            ("x/own", false),
            ("*", false),
        ] {
            let mut rule = MessageRule::for_method(NameGlob::parse(method).unwrap());
            assert!(warnings(&rule, Revisions::ALL, "rule[0]").is_empty());
            rule.name = Some(NameGlob::parse("admin_*").unwrap());
            let warnings = warnings(&rule, Revisions::ALL, "rule[0]");
            assert_eq!(!warnings.is_empty(), is_named, "{method}: {warnings:?}");
        }
    }
}
