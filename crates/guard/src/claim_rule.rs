use portcullis_verifier::Principal;
use serde_json::Value;

/// Something that a token's claims have to say, beside its scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRule {
    claim: Box<str>,
    test: ClaimTest,
    report_only: bool,
}

/// What is wanted of a claim. Where the claim is an array, one of its elements has to be as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimTest {
    /// It is there, and not `null`.
    Present,
    /// It is one of these, compared exactly. A number or boolean is compared as JSON writes it: `7`, `true`.
    OneOf(Vec<String>),
    /// It is a text that ends in `@` and one of these domains, in any letter case. A domain below one of them is another
    /// domain.
    Domain(Vec<String>),
}

/// Why a [`ClaimRule`] cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimRuleError {
    /// The claim has no name.
    #[error("a claim rule names a claim, or a JSON pointer to one such as `/realm_access/roles`")]
    NoClaim,
    /// The JSON pointer has a `~` that is neither `~0` nor `~1` (RFC 6901 section 3).
    #[error("in a JSON pointer `~` is written `~0`, and `/` in a name `~1`")]
    Pointer,
    /// There is nothing that the claim may be.
    #[error("a claim rule lists at least one value, and no empty one")]
    NoValue,
    /// A domain has an `@`.
    #[error("a domain is written without `@`")]
    Domain,
}

impl ClaimRuleError {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoClaim => "settings.claim_name",
            Self::Pointer => "settings.claim_pointer",
            Self::NoValue => "settings.claim_values",
            Self::Domain => "settings.claim_domain",
        }
    }
}

/// How claims fall short of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimDenial {
    /// The claim is not there, or `null`.
    Missing,
    /// The claim is not as wanted.
    Mismatch,
}

impl ClaimDenial {
    /// The stable reason code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "claim.missing",
            Self::Mismatch => "claim.mismatch",
        }
    }
}

/// The result of evaluating claim rules: the first denial by an enforced rule, and the first by a report-only rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimDenials {
    /// The first denial by an enforced rule. The request must be rejected.
    pub enforced: Option<ClaimDenial>,
    /// The first denial by a report-only rule. The request is not rejected for it.
    pub report_only: Option<ClaimDenial>,
}

impl ClaimRule {
    /// A rule for the claim of this name or, where it begins with a slash, at this JSON pointer (RFC 6901) into the
    /// claims.
    ///
    /// # Errors
    /// When the rule could never be met, or does not mean what it seems to.
    pub fn new(claim: &str, test: ClaimTest) -> Result<Self, ClaimRuleError> {
        if claim.is_empty() {
            return Err(ClaimRuleError::NoClaim);
        }
        let is_escape = |after: &str| after.starts_with(['0', '1']);
        if claim.starts_with('/') && !claim.split('~').skip(1).all(is_escape) {
            return Err(ClaimRuleError::Pointer);
        }
        if let ClaimTest::OneOf(values) | ClaimTest::Domain(values) = &test
            && (values.is_empty() || values.iter().any(String::is_empty))
        {
            return Err(ClaimRuleError::NoValue);
        }
        if matches!(&test, ClaimTest::Domain(domains) if domains.iter().any(|domain| domain.contains('@'))) {
            return Err(ClaimRuleError::Domain);
        }
        Ok(Self { claim: claim.into(), test, report_only: false })
    }

    /// The same rule in report-only mode: it refuses nothing, and the [`Decision`](crate::Decision) says what it would
    /// have refused.
    #[must_use]
    pub fn report_only(mut self) -> Self {
        self.report_only = true;
        self
    }

    /// Whether a principal's claims are as wanted, in report-only mode too.
    ///
    /// # Errors
    /// When they are not.
    pub fn check(&self, principal: &Principal) -> Result<(), ClaimDenial> {
        let value = principal.claim(&self.claim).filter(|value| !value.is_null()).ok_or(ClaimDenial::Missing)?;
        let is_met = match value {
            Value::Array(values) => values.iter().any(|value| self.test.is_met_by(value)),
            value => self.test.is_met_by(value),
        };
        if is_met { Ok(()) } else { Err(ClaimDenial::Mismatch) }
    }
}

impl ClaimDenials {
    /// Evaluates more rules. Each rule must be met.
    pub fn evaluate(&mut self, rules: &[ClaimRule], principal: &Principal) {
        for rule in rules {
            let Err(unmet) = rule.check(principal) else { continue };
            let report_only = rule.report_only;
            tracing::debug!(claim = &*rule.claim, deny.code = unmet.code(), report_only, "claim rule");
            let first = if report_only { &mut self.report_only } else { &mut self.enforced };
            first.get_or_insert(unmet);
        }
    }
}

impl ClaimTest {
    fn is_met_by(&self, value: &Value) -> bool {
        match self {
            Self::Present => !value.is_null(),
            Self::OneOf(wanted) => match value {
                Value::String(text) => wanted.contains(text),
                Value::Bool(_) | Value::Number(_) => wanted.contains(&value.to_string()),
                _ => false,
            },
            Self::Domain(domains) => {
                let domain = value.as_str().and_then(|text| text.rsplit_once('@')).map(|(_, domain)| domain);
                domain.is_some_and(|domain| domains.iter().any(|wanted| wanted.eq_ignore_ascii_case(domain)))
            }
        }
    }
}
