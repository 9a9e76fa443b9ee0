//! [`BrokerValues`]: the values of `[broker]`.

use std::env;

use portcullis_identity_provider::ProviderKind;

use super::source::Source;

/// The page that explains `[broker]`.
pub(super) const PAGE: &str =
    "docs/use/configuration-broker.md#broker-an-authorization-server-of-its-own";
/// The beginning of the variables that are settings of this program.
const SETTINGS: &str = "PORTCULLIS_";
/// The scope with which GitHub lists the organizations of a user.
const ORGANIZATIONS_SCOPE: &str = "read:org";

/// The values of `[broker]`. [`BrokerValues::new`] is valid.
pub(super) struct BrokerValues {
    pub(super) source: Source,
    /// The identifier of the application at the provider.
    pub(super) client_id: String,
    /// The environment variable with its secret.
    pub(super) secret_variable: String,
    /// The rules that every user must meet.
    pub(super) allow: Vec<AllowRule>,
}

/// The accepted values of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AllowRule {
    pub(super) claim: String,
    pub(super) values: Vec<String>,
}

impl BrokerValues {
    /// The identifier while there is no answer.
    const UNKNOWN_CLIENT: &str = "the-client-id-at-the-provider";

    pub(super) fn new(source: Source) -> Self {
        let allow = example_of_allow(source.kind).filter(|_| needs_allow(source.kind));
        Self {
            client_id: Self::UNKNOWN_CLIENT.to_owned(),
            secret_variable: default_variable(source.kind),
            allow: allow
                .and_then(|text| AllowRule::parse(text).ok())
                .into_iter()
                .collect(),
            source,
        }
    }

    /// The redirect URI to register.
    pub(super) fn redirect_uri(&self, base_url: &str) -> String {
        format!("{base_url}/oauth/callback/{}", self.source.kind.as_str())
    }

    /// The scopes to request from the provider, if those of the kind do not give the claims of the
    /// rules.
    pub(super) fn scopes(&self) -> Option<[&'static str; 1]> {
        let is_of_organizations = |rule: &AllowRule| matches!(&*rule.claim, "orgs" | "org_ids");
        let needs_organizations =
            self.source.kind == ProviderKind::GitHub && self.allow.iter().any(is_of_organizations);
        needs_organizations.then_some([ORGANIZATIONS_SCOPE])
    }
}

impl AllowRule {
    /// Parses `CLAIM=VALUE`, with commas between several values.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let invalid =
            || format!("{text:?} is not a claim and its value; write it as hd=example.com");
        let (claim, values) = text.split_once('=').ok_or_else(invalid)?;
        let values: Vec<String> = values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        let claim = claim.trim();
        if claim.is_empty() || values.iter().any(String::is_empty) {
            return Err(invalid());
        }
        Ok(Self {
            claim: claim.to_owned(),
            values,
        })
    }
}

/// Whether anyone can have an account at the provider.
pub(super) fn needs_allow(kind: ProviderKind) -> bool {
    matches!(kind, ProviderKind::Google | ProviderKind::GitHub)
}

/// An example of a rule, as in an answer. `None` if claims are what the operator makes them.
pub(super) fn example_of_allow(kind: ProviderKind) -> Option<&'static str> {
    match kind {
        ProviderKind::Google => Some("hd=example.com"),
        ProviderKind::GitHub => Some("orgs=example"),
        ProviderKind::Entra => Some("roles=mcp-users"),
        _ => None,
    }
}

/// What the claims of the example are, for a question.
pub(super) fn explanation_of_allow(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Google => {
            "hd is the domain of an organization in Google Workspace, and sub an account"
        }
        ProviderKind::GitHub => "orgs are organizations, and id is the number of an account",
        _ => "the claim of the provider's ID token, and its accepted values",
    }
}

/// The variable that is proposed for the secret.
pub(super) fn default_variable(kind: ProviderKind) -> String {
    format!("{}_CLIENT_SECRET", kind.as_str().to_ascii_uppercase())
}

/// Fails with the reason if an environment variable cannot have this name, or would be a setting.
pub(super) fn check_variable(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = name.bytes().all(is_plain)
        && name.starts_with(|first: char| !first.is_ascii_digit())
        // A secret of GitHub is 40 hexadecimal digits.
        && (!name.bytes().any(|byte| byte.is_ascii_lowercase()) || env::var_os(name).is_some());
    if !is_name {
        return Err(
            "this is not the name of an environment variable, and it is not repeated, because it may be the secret itself; save \
             the secret in a variable, and give its name, such as CLIENT_SECRET"
                .to_owned(),
        );
    }
    if name.to_ascii_uppercase().starts_with(SETTINGS) {
        return Err(format!(
            "{name} would be a setting of this program; choose a name that does not begin with {SETTINGS}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_a_claim_and_values() {
        let rule = AllowRule::parse("hd = example.com, example.org").unwrap();
        assert_eq!(rule.claim, "hd");
        assert_eq!(rule.values, ["example.com", "example.org"]);
        for invalid in ["", "example.com", "=a", "hd=", "hd=a,,b"] {
            assert!(AllowRule::parse(invalid).is_err(), "{invalid}");
        }
    }

    /// Neither a secret nor a setting is taken for the name of a variable, and a secret is not
    /// repeated.
    #[test]
    fn variables_have_plain_names() {
        for name in ["GOOGLE_CLIENT_SECRET", "_X1"] {
            assert!(check_variable(name).is_ok(), "{name}");
        }
        for name in [
            "GOCSPX-abc",
            "hunter2",
            "c0ffee1234567890c0ffee1234567890c0ffee12",
            "1A",
            "$A",
            "A B",
        ] {
            let reason = check_variable(name).unwrap_err();
            assert!(!reason.contains(name), "{reason}");
        }
        assert!(check_variable("").is_err());
        assert!(check_variable("PORTCULLIS_SECRET").is_err());
        for kind in ProviderKind::ALL {
            assert!(check_variable(&default_variable(kind)).is_ok());
        }
    }
}
