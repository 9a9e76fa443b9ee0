use portcullis_reason_codes::ReasonCodes;
use portcullis_verifier::{Principal, is_claim_path};
use serde_json::Value;

/// A requirement on one claim of the token, in addition to scopes.
///
/// The claims are those of the verified token: of its payload or, if it was only introspected, of
/// the response. A claim that is missing or `null` meets no requirement.
///
/// ```
/// use portcullis_guard::authorize::{ClaimRule, ClaimTest};
///
/// // Only members of the group `staff`.
/// ClaimRule::new("groups", ClaimTest::OneOf(vec!["staff".to_owned()]))?;
/// // Only addresses at example.com. Start with a report before you enforce it. This does not check
/// // `email_verified`.
/// ClaimRule::new("email", ClaimTest::Domain(vec!["example.com".to_owned()]))?.report_only();
/// // A claim inside another one.
/// ClaimRule::new("/realm_access/roles", ClaimTest::OneOf(vec!["mcp-user".to_owned()]))?;
///
/// let error = ClaimRule::new("groups", ClaimTest::OneOf(Vec::new())).unwrap_err();
/// assert_eq!(error.code(), "settings.claim_values");
/// # Ok::<(), portcullis_guard::authorize::ClaimRuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRule {
    claim: Box<str>,
    test: ClaimTest,
    report_only: bool,
}

/// The condition on a claim. If the claim is an array, one of its elements must meet the condition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimTest {
    /// The claim is present and not `null`. An array needs an element that is not `null`.
    Present,
    /// The claim is one of these values, compared exactly. Numbers and booleans are compared in
    /// their JSON form: `7`, `true`.
    OneOf(Vec<String>),
    /// The claim is a string that ends with `@` and one of these domains. ASCII case is ignored.
    /// Subdomains do not match.
    Domain(Vec<String>),
}

/// Why a [`ClaimRule`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum ClaimRuleError {
    /// The name of the claim is empty.
    #[error(
        "a claim rule must name a claim, or a JSON pointer to one such as `/realm_access/roles`"
    )]
    #[code = "settings.claim_name"]
    NoClaim,
    /// The JSON pointer has a `~` that is neither `~0` nor `~1` (RFC 6901 section 3).
    #[error("a JSON pointer must write `~` as `~0`, and `/` in a name as `~1`")]
    #[code = "settings.claim_pointer"]
    Pointer,
    /// The list of values is empty or has an empty value.
    #[error("a claim rule must list at least one value, and no empty value")]
    #[code = "settings.claim_values"]
    NoValue,
    /// A domain contains `@`.
    #[error("a domain must not contain `@`")]
    #[code = "settings.claim_domain"]
    Domain,
}

/// Why a rule denies a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ReasonCodes)]
#[non_exhaustive]
pub enum ClaimDenial {
    /// The claim is missing or `null`.
    #[code = "claim.missing"]
    Missing,
    /// The claim does not meet the condition.
    #[code = "claim.mismatch"]
    Mismatch,
}

/// The result of evaluating claim rules: the first denial by an enforced rule, and the first by a
/// report-only rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimDenials {
    /// The first denial by an enforced rule. The request must be rejected.
    pub enforced: Option<ClaimDenial>,
    /// The first denial by a report-only rule. The request is not rejected for it.
    pub report_only: Option<ClaimDenial>,
}

impl ClaimRule {
    /// Creates a rule for the claim with this name. A name that starts with `/` is a JSON pointer
    /// (RFC 6901) into the claims.
    ///
    /// # Errors
    /// Fails if the name is empty or a malformed pointer, or if the condition has no values, an
    /// empty value, or a domain with `@`.
    pub fn new(claim: &str, test: ClaimTest) -> Result<Self, ClaimRuleError> {
        if claim.is_empty() {
            return Err(ClaimRuleError::NoClaim);
        }
        if !is_claim_path(claim) {
            return Err(ClaimRuleError::Pointer);
        }
        if let ClaimTest::OneOf(values) | ClaimTest::Domain(values) = &test
            && (values.is_empty() || values.iter().any(String::is_empty))
        {
            return Err(ClaimRuleError::NoValue);
        }
        if matches!(&test, ClaimTest::Domain(domains) if domains.iter().any(|domain| domain.contains('@')))
        {
            return Err(ClaimRuleError::Domain);
        }
        Ok(Self {
            claim: claim.into(),
            test,
            report_only: false,
        })
    }

    /// Makes the rule report-only: it rejects no request. If all enforced rules and scopes allow
    /// the request, the [`Decision`](crate::Decision) has the code of the first denial by a
    /// report-only rule.
    #[must_use]
    pub fn report_only(mut self) -> Self {
        self.report_only = true;
        self
    }

    /// Checks the claims of a principal. It does not consider whether the rule is report-only.
    ///
    /// # Errors
    /// Fails if the claim is missing or does not meet the condition.
    pub fn check(&self, principal: &Principal) -> Result<(), ClaimDenial> {
        self.check_value(principal.claim(&self.claim))
    }

    /// Checks the value of the claim, for claims that are not those of an access token. It does not
    /// consider whether the rule is report-only.
    ///
    /// # Errors
    /// Fails if the claim is missing or does not meet the condition.
    pub fn check_value(&self, value: Option<&Value>) -> Result<(), ClaimDenial> {
        let value = value
            .filter(|value| !value.is_null())
            .ok_or(ClaimDenial::Missing)?;
        let is_met = match value {
            Value::Array(values) => values.iter().any(|value| self.test.is_met_by(value)),
            value => self.test.is_met_by(value),
        };
        if is_met {
            Ok(())
        } else {
            Err(ClaimDenial::Mismatch)
        }
    }

    /// Returns the name of the claim, or the JSON pointer to it.
    pub fn claim(&self) -> &str {
        &self.claim
    }
}

impl ClaimDenials {
    /// Evaluates these rules for a principal. Denials of an earlier call are kept, so several lists
    /// can be evaluated one after the other. Each denial is logged at level debug.
    pub fn evaluate(&mut self, rules: &[ClaimRule], principal: &Principal) {
        for rule in rules {
            let Err(denial) = rule.check(principal) else {
                continue;
            };
            let report_only = rule.report_only;
            tracing::debug!(
                claim = &*rule.claim,
                deny.code = denial.code(),
                report_only,
                "claim rule"
            );
            let first = if report_only {
                &mut self.report_only
            } else {
                &mut self.enforced
            };
            first.get_or_insert(denial);
        }
    }
}

impl ClaimTest {
    /// Returns whether a claim, or an element of an array, meets the condition.
    fn is_met_by(&self, value: &Value) -> bool {
        match self {
            Self::Present => !value.is_null(),
            Self::OneOf(values) => match value {
                Value::String(text) => values.contains(text),
                Value::Bool(_) | Value::Number(_) => values.contains(&value.to_string()),
                _ => false,
            },
            Self::Domain(domains) => {
                let domain = value
                    .as_str()
                    .and_then(|text| text.rsplit_once('@'))
                    .map(|(_, domain)| domain);
                domain.is_some_and(|domain| {
                    domains
                        .iter()
                        .any(|listed| listed.eq_ignore_ascii_case(domain))
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    /// C14: each condition for values of every JSON type. An array is then an element of another
    /// one.
    #[test]
    fn conditions_are_met_by_values() {
        let one_of = ClaimTest::OneOf(texts(&["a", "7", "true", "null"]));
        let domain = ClaimTest::Domain(texts(&["example.com"]));
        for (value, is_present, is_one_of, has_domain) in [
            (json!("a"), true, true, false),
            (json!("A"), true, false, false),
            (json!(7), true, true, false),
            (json!(7.5), true, false, false),
            (json!(true), true, true, false),
            (json!(false), true, false, false),
            (json!(null), false, false, false),
            (json!({}), true, false, false),
            (json!(["a", "x@example.com"]), true, false, false),
            (json!("x@Example.com"), true, false, true),
            (json!("x@sub.example.com"), true, false, false),
            (json!("example.com"), true, false, false),
            (json!("x@example.com@y"), true, false, false),
        ] {
            assert_eq!(ClaimTest::Present.is_met_by(&value), is_present, "{value}");
            assert_eq!(one_of.is_met_by(&value), is_one_of, "{value}");
            assert_eq!(domain.is_met_by(&value), has_domain, "{value}");
        }
    }

    /// C14: a rule that could never be met, or that would be misread, is rejected.
    #[test]
    fn invalid_rules_are_rejected() {
        let values = || ClaimTest::OneOf(texts(&["a"]));
        for (claim, test, expected) in [
            ("", values(), Err(ClaimRuleError::NoClaim)),
            ("", ClaimTest::Present, Err(ClaimRuleError::NoClaim)),
            ("/a~2", values(), Err(ClaimRuleError::Pointer)),
            ("/a~", values(), Err(ClaimRuleError::Pointer)),
            ("/a~0~1", values(), Ok(())),
            ("a~", values(), Ok(())),
            (
                "a",
                ClaimTest::OneOf(Vec::new()),
                Err(ClaimRuleError::NoValue),
            ),
            (
                "a",
                ClaimTest::OneOf(texts(&["a", ""])),
                Err(ClaimRuleError::NoValue),
            ),
            (
                "a",
                ClaimTest::Domain(Vec::new()),
                Err(ClaimRuleError::NoValue),
            ),
            (
                "a",
                ClaimTest::Domain(texts(&[""])),
                Err(ClaimRuleError::NoValue),
            ),
            (
                "a",
                ClaimTest::Domain(texts(&["x@example.com"])),
                Err(ClaimRuleError::Domain),
            ),
            ("a", ClaimTest::Present, Ok(())),
        ] {
            assert_eq!(
                ClaimRule::new(claim, test.clone()).map(drop),
                expected,
                "{claim} {test:?}"
            );
        }
        for (error, code) in [
            (ClaimRuleError::NoClaim, "settings.claim_name"),
            (ClaimRuleError::Pointer, "settings.claim_pointer"),
            (ClaimRuleError::NoValue, "settings.claim_values"),
            (ClaimRuleError::Domain, "settings.claim_domain"),
        ] {
            assert_eq!(error.code(), code);
        }
    }
}
