//! Rules for a request of which only the operation is known, because it was admitted before.

use portcullis_guard::{Operation, authorize::ClaimDenials};
use portcullis_verifier::Principal;

use super::{MessageRule, NameGlob, Rules};

impl Rules {
    /// Returns whether scopes and claims admit this operation; without one a GET. Rate limits do
    /// not count.
    pub(crate) fn admit(&self, operation: Option<&Operation>, principal: &Principal) -> bool {
        let covers = |needed| self.implications.covers(principal.scopes(), needed);
        let mut has_scopes = covers(&self.required);
        let mut denials = ClaimDenials::default();
        for rule in self.rules.iter().filter(|rule| may_match(rule, operation)) {
            has_scopes &= covers(&rule.scopes);
            denials.evaluate(&rule.claims, principal);
        }
        has_scopes && denials.enforced.is_none()
    }
}

/// Returns whether a rule applies to an operation, as far as its names are known.
fn may_match(rule: &MessageRule, operation: Option<&Operation>) -> bool {
    let matches_method =
        |glob: &NameGlob| operation.is_some_and(|operation| glob.matches(operation.name()));
    let may_match_name =
        |glob: &NameGlob| operation.is_some_and(|operation| may_match_target(glob, operation));
    rule.method.as_ref().is_none_or(matches_method) && rule.name.as_ref().is_none_or(may_match_name)
}

fn may_match_target(glob: &NameGlob, operation: &Operation) -> bool {
    let mut targets = operation
        .target()
        .into_iter()
        .chain(operation.additional_targets());
    let known = 1 + operation.additional_targets().count();
    // A target that was truncated lacks at most one character of the maximum.
    let is_complete = |target: &str| target.len() <= Operation::MAX_BYTES - char::MAX_LEN_UTF8;
    let is_exact = |target: &str| is_without_resources(operation.name()) && is_complete(target);
    operation.target_count() > known
        || targets.any(|target| glob.matches(target) || !is_exact(target))
}

/// Returns whether a method names tools, prompts or tasks only. Their names are reported unchanged;
/// the URI of a resource has several spellings, and is reported without its query.
fn is_without_resources(method: &str) -> bool {
    let is_prefix = |prefix: &str| {
        method
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    ["tools/", "prompts/", "tasks/"].into_iter().any(is_prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(method: &str, name: Option<&str>) -> MessageRule {
        let mut rule = MessageRule::for_method(NameGlob::parse(method).unwrap());
        rule.name = name.map(|name| NameGlob::parse(name).unwrap());
        rule
    }

    /// J10: a rule applies to a stream if it applies to its message, or if the message's names are
    /// not known exactly.
    #[test]
    fn rules_match_operations() {
        let call = Operation::new("tools/call", Some("admin_reset"));
        let long = Operation::new("tools/call", Some(&"a".repeat(Operation::MAX_BYTES)));
        let long_characters = format!("{}\u{e9}", "a".repeat(Operation::MAX_BYTES - 1));
        let long_characters = Operation::new("tools/call", Some(&long_characters));
        let namespaced = Operation::new("Tools/Call", Some("ns:user/reset"));
        let read = Operation::new("resources/read", Some("file:///a"));
        let without_query = Operation::new("resources/read", Some("report"));
        let many =
            Operation::new("tools/call", Some("a")).with_additional_targets((0..99).map(|_| "b"));
        for (rule, operation, expected) in [
            (MessageRule::default(), None, true),
            (MessageRule::default(), Some(&call), true),
            (rule("tools/*", None), None, false),
            (rule("tools/*", None), Some(&call), true),
            (rule("prompts/*", None), Some(&call), false),
            (rule("tools/*", Some("admin_*")), Some(&call), true),
            (rule("tools/*", Some("user_*")), Some(&call), false),
            (rule("prompts/*", Some("admin_*")), Some(&call), false),
            (rule("tools/*", Some("user_*")), Some(&long), true),
            (
                rule("tools/*", Some("user_*")),
                Some(&long_characters),
                true,
            ),
            (rule("tools/*", Some("user_*")), Some(&many), true),
            (rule("tools/*", Some("user_*")), Some(&namespaced), false),
            (rule("resources/*", Some("note:*")), Some(&read), true),
            (
                rule("resources/*", Some("report?secret*")),
                Some(&without_query),
                true,
            ),
            (
                rule("tools/*", Some("a")),
                Some(&Operation::new("tools/list", None)),
                false,
            ),
        ] {
            assert_eq!(
                may_match(&rule, operation),
                expected,
                "{rule:?} {operation:?}"
            );
        }
    }
}
