use std::borrow::Cow;

use portcullis_guard::{Decision, Operation};
use portcullis_telemetry::{MAX_TEXT, json::JsonObject, truncated};
use portcullis_verifier::Principal;

/// The maximum size of an identifier in bytes. It is larger than [`MAX_TEXT`], because truncated
/// identifiers of two principals could be equal.
const MAX_NAME: usize = 1024;

/// The resource, the principal and the tool of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct UsageKey<'a> {
    resource: Cow<'a, str>,
    principal: Option<PrincipalMembers<'a>>,
    /// The tool that is called.
    pub(super) tool: Option<Cow<'a, str>>,
}

/// The issuer, subject and client of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PrincipalMembers<'a> {
    issuer: Cow<'a, str>,
    subject: Option<Cow<'a, str>>,
    client: Option<Cow<'a, str>>,
}

impl<'a> PrincipalMembers<'a> {
    pub(super) fn of(principal: &'a Principal) -> Self {
        Self::new(
            principal.issuer().as_str(),
            principal.subject(),
            principal.client(),
        )
    }

    pub(super) fn new(issuer: &'a str, subject: Option<&'a str>, client: Option<&'a str>) -> Self {
        let name = |name| truncated(name, MAX_NAME);
        Self {
            issuer: name(issuer),
            subject: subject.map(name),
            client: client.map(name),
        }
    }

    /// Adds the members that are given: a request of an administrator need not name all of them.
    pub(super) fn add_given(
        issuer: Option<&str>,
        subject: Option<&str>,
        client: Option<&str>,
        record: &mut JsonObject<'_>,
    ) {
        let names = [
            ("principal.issuer", issuer),
            ("principal.subject", subject),
            ("principal.client", client),
        ];
        for (name, value) in names {
            record.optional_text(
                name,
                value.map(|value| truncated(value, MAX_NAME)).as_deref(),
            );
        }
    }

    pub(super) fn add_to(&self, record: &mut JsonObject<'_>) {
        record.text("principal.issuer", &self.issuer);
        record.optional_text("principal.subject", self.subject.as_deref());
        record.optional_text("principal.client", self.client.as_deref());
    }

    fn into_owned(self) -> PrincipalMembers<'static> {
        PrincipalMembers {
            issuer: owned(self.issuer),
            subject: self.subject.map(owned),
            client: self.client.map(owned),
        }
    }
}

impl<'a> UsageKey<'a> {
    pub(super) fn of(decision: &Decision<'a>) -> Self {
        let tool = decision.operation.and_then(Operation::tool);
        Self::new(decision.resource.as_str(), decision.principal, tool)
    }

    pub(super) fn new(
        uri: &'a str,
        principal: Option<&'a Principal>,
        tool: Option<&'a str>,
    ) -> Self {
        Self {
            resource: resource(uri),
            principal: principal.map(PrincipalMembers::of),
            tool: tool.map(|tool| truncated(tool, MAX_TEXT)),
        }
    }

    pub(super) fn add_to(&self, record: &mut JsonObject<'_>) {
        record.text("resource", &self.resource);
        if let Some(principal) = &self.principal {
            principal.add_to(record);
        }
        record.optional_text("mcp.tool", self.tool.as_deref());
    }

    pub(super) fn into_owned(self) -> UsageKey<'static> {
        UsageKey {
            resource: owned(self.resource),
            principal: self.principal.map(PrincipalMembers::into_owned),
            tool: self.tool.map(owned),
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// Returns the text of a `resource` member.
pub(super) fn resource(uri: &str) -> Cow<'_, str> {
    truncated(uri, MAX_NAME)
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::{TestIssuer, strategies::any_text};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::VerifierFixture;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// J4: the tokens of one principal have one key for each resource and tool.
        #[test]
        fn tokens_of_one_principal_share_a_key(
            subject in any_text(), client in any_text(), tool in proptest::option::of(any_text())
        ) {
            let fixture = VerifierFixture::new();
            let one = fixture.verified(&subject, &client);
            let again = fixture.verified(&subject, &client);
            let tool = tool.as_deref();
            let key = UsageKey::new(TestIssuer::RESOURCE, Some(one.principal()), tool);
            prop_assert_eq!(&UsageKey::new(TestIssuer::RESOURCE, Some(again.principal()), tool), &key);
            prop_assert_eq!(&key.clone().into_owned(), &key);
            let other_tool = UsageKey::new(TestIssuer::RESOURCE, Some(one.principal()), Some("another tool"));
            let other_resource = UsageKey::new("https://mcp.example.com/other", Some(one.principal()), tool);
            prop_assert!(other_tool != key);
            prop_assert!(other_resource != key);
            prop_assert_ne!(&UsageKey::new(TestIssuer::RESOURCE, None, tool), &key);
        }
    }

    /// J4: requests without a token have the members resource and tool.
    #[test]
    fn requests_without_a_token_have_a_key() {
        let json = |tool| {
            let mut out = Vec::new();
            JsonObject::write(&mut out, |record| {
                UsageKey::new(TestIssuer::RESOURCE, None, tool).add_to(record)
            });
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            json(Some("add")),
            r#"{"resource":"https://mcp.example.com/mcp","mcp.tool":"add"}"#
        );
        assert_eq!(json(None), r#"{"resource":"https://mcp.example.com/mcp"}"#);
    }
}
