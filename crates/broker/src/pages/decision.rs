//! [`Decision`]: what the user answered on the consent page.

use std::fmt;

const DENY: &str = "deny";
const ALLOW_PREFIX: &str = "allow:";

/// What the user answered on the consent page: the value of `decision` in its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision<'a> {
    Deny,
    /// The user approves, and signs in at the provider with this name.
    Allow(&'a str),
}

impl<'a> Decision<'a> {
    /// Parses the value of `decision`. The name of the provider can be any text.
    pub(crate) fn parse(value: &'a str) -> Option<Self> {
        if value == DENY {
            return Some(Self::Deny);
        }
        value.strip_prefix(ALLOW_PREFIX).map(Self::Allow)
    }
}

impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deny => f.write_str(DENY),
            Self::Allow(provider) => write!(f, "{ALLOW_PREFIX}{provider}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A provider can have any name, also `deny`.
    #[test]
    fn a_decision_is_read_as_it_was_written() {
        for decision in [
            Decision::Deny,
            Decision::Allow("entra"),
            Decision::Allow("deny"),
        ] {
            assert_eq!(Decision::parse(&decision.to_string()), Some(decision));
        }
    }

    #[test]
    fn anything_else_is_no_decision() {
        for value in ["", "allow", "Deny", "deny ", "entra"] {
            assert_eq!(Decision::parse(value), None, "{value}");
        }
    }
}
