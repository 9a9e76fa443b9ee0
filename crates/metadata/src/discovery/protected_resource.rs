//! [`ProtectedResourceMetadata`]: the metadata document of a protected resource.

use serde_json::{Map, Value};

use crate::{
    identifier::{Issuer, ResourceUri},
    json::{DocumentError, Members, ObjectBuilder},
};

/// The metadata document of a protected resource (RFC 9728 section 2).
///
/// Parsing and serializing preserves every member, known or not, with two exceptions. A known
/// member that is `null` counts as missing. A member with an empty array is omitted, as section 3.2
/// requires, unless it is `bearer_methods_supported`, whose empty array has a meaning.
/// Language-tagged members such as `resource_name#de` are in [`extra`](Self::extra).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedResourceMetadata {
    /// The resource's identifier.
    pub resource: ResourceUri,
    /// The issuers of the authorization servers that issue tokens for the resource.
    /// [`parse`](Self::parse) requires at least one, as MCP does (2025-06-18 and later,
    /// "Authorization Server Location"). Nothing else checks that there is one.
    pub authorization_servers: Vec<Issuer>,
    /// The URL of the resource's own JWK set.
    pub jwks_uri: Option<String>,
    /// The scopes that clients may request. The list need not be complete.
    pub scopes_supported: Vec<String>,
    /// The ways to send a bearer token: `header`, `body`, `query`. An empty list means that there
    /// is none. `None` means that the document does not say.
    pub bearer_methods_supported: Option<Vec<String>>,
    /// The algorithms with which the resource signs responses.
    pub resource_signing_alg_values_supported: Vec<String>,
    /// The name that people see.
    pub resource_name: Option<String>,
    /// The URL of the documentation for developers.
    pub resource_documentation: Option<String>,
    /// The URL of the policy on how clients may use the data.
    pub resource_policy_uri: Option<String>,
    /// The URL of the terms of service.
    pub resource_tos_uri: Option<String>,
    /// Whether tokens are bound to client certificates (RFC 8705). `None` means `false`.
    pub tls_client_certificate_bound_access_tokens: Option<bool>,
    /// The supported values of `type` in authorization details (RFC 9396).
    pub authorization_details_types_supported: Vec<String>,
    /// The signature algorithms of DPoP proofs (RFC 9449).
    pub dpop_signing_alg_values_supported: Vec<String>,
    /// Whether every token must be bound to a DPoP key (RFC 9449). `None` means `false`.
    pub dpop_bound_access_tokens_required: Option<bool>,
    /// The same metadata as a signed JWT. It is kept but not verified.
    pub signed_metadata: Option<String>,
    /// All other members. [`to_json`](Self::to_json) ignores a member that has the name of a field.
    pub extra: Map<String, Value>,
}

impl ProtectedResourceMetadata {
    /// Creates metadata that has only `resource`, which RFC 9728 section 2 requires, and
    /// `authorization_servers`, which MCP requires. Does not check that there is an authorization
    /// server.
    pub fn new(resource: ResourceUri, authorization_servers: Vec<Issuer>) -> Self {
        Self {
            resource,
            authorization_servers,
            jwks_uri: None,
            scopes_supported: Vec::new(),
            bearer_methods_supported: None,
            resource_signing_alg_values_supported: Vec::new(),
            resource_name: None,
            resource_documentation: None,
            resource_policy_uri: None,
            resource_tos_uri: None,
            tls_client_certificate_bound_access_tokens: None,
            authorization_details_types_supported: Vec::new(),
            dpop_signing_alg_values_supported: Vec::new(),
            dpop_bound_access_tokens_required: None,
            signed_metadata: None,
            extra: Map::new(),
        }
    }

    /// Parses a document.
    ///
    /// Does not check that `resource` is the expected resource (RFC 9728 section 3.3). Of the URLs,
    /// checks only `resource` and `authorization_servers`.
    ///
    /// # Errors
    /// Fails if the document is not a JSON object without duplicate members, `resource` is missing
    /// or not a resource identifier (RFC 9728 section 2), or a known member has the wrong type.
    /// Also fails if `authorization_servers` is missing, empty, or has an entry that is not an
    /// issuer identifier: the member is optional in RFC 9728 and required by MCP ("Authorization
    /// Server Location").
    pub fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(document)?;
        let resource = members.required_string("resource")?;
        Ok(Self {
            resource: ResourceUri::parse(&resource)
                .map_err(|reason| DocumentError::Resource { reason })?,
            authorization_servers: authorization_servers(&mut members)?,
            jwks_uri: members.string("jwks_uri")?,
            scopes_supported: members.list("scopes_supported")?,
            bearer_methods_supported: members.strings("bearer_methods_supported")?,
            resource_signing_alg_values_supported: members
                .list("resource_signing_alg_values_supported")?,
            resource_name: members.string("resource_name")?,
            resource_documentation: members.string("resource_documentation")?,
            resource_policy_uri: members.string("resource_policy_uri")?,
            resource_tos_uri: members.string("resource_tos_uri")?,
            tls_client_certificate_bound_access_tokens: members
                .boolean("tls_client_certificate_bound_access_tokens")?,
            authorization_details_types_supported: members
                .list("authorization_details_types_supported")?,
            dpop_signing_alg_values_supported: members.list("dpop_signing_alg_values_supported")?,
            dpop_bound_access_tokens_required: members
                .boolean("dpop_bound_access_tokens_required")?,
            signed_metadata: members.string("signed_metadata")?,
            extra: members.remaining(),
        })
    }

    /// Serializes the document. The members are in alphabetical order, unless the feature
    /// `preserve_order` of `serde_json` is on in the build.
    pub fn to_json(&self) -> Vec<u8> {
        let Self {
            resource,
            authorization_servers,
            jwks_uri,
            scopes_supported,
            bearer_methods_supported,
            resource_signing_alg_values_supported,
            resource_name,
            resource_documentation,
            resource_policy_uri,
            resource_tos_uri,
            tls_client_certificate_bound_access_tokens,
            authorization_details_types_supported,
            dpop_signing_alg_values_supported,
            dpop_bound_access_tokens_required,
            signed_metadata,
            extra,
        } = self;
        let mut object = ObjectBuilder::for_metadata(extra);
        object.string("resource", Some(resource.as_str()));
        object.strings(
            "authorization_servers",
            authorization_servers.iter().map(Issuer::as_str),
        );
        object.string("jwks_uri", jwks_uri.as_deref());
        object.list("scopes_supported", scopes_supported);
        object.possibly_empty_list(
            "bearer_methods_supported",
            bearer_methods_supported.as_deref(),
        );
        object.list(
            "resource_signing_alg_values_supported",
            resource_signing_alg_values_supported,
        );
        object.string("resource_name", resource_name.as_deref());
        object.string("resource_documentation", resource_documentation.as_deref());
        object.string("resource_policy_uri", resource_policy_uri.as_deref());
        object.string("resource_tos_uri", resource_tos_uri.as_deref());
        object.boolean(
            "tls_client_certificate_bound_access_tokens",
            *tls_client_certificate_bound_access_tokens,
        );
        object.list(
            "authorization_details_types_supported",
            authorization_details_types_supported,
        );
        object.list(
            "dpop_signing_alg_values_supported",
            dpop_signing_alg_values_supported,
        );
        object.boolean(
            "dpop_bound_access_tokens_required",
            *dpop_bound_access_tokens_required,
        );
        object.string("signed_metadata", signed_metadata.as_deref());
        object.into_json()
    }
}

fn authorization_servers(members: &mut Members) -> Result<Vec<Issuer>, DocumentError> {
    let member = "authorization_servers";
    let entries = members
        .strings(member)?
        .ok_or(DocumentError::Missing { member })?;
    if entries.is_empty() {
        return Err(DocumentError::Empty { member });
    }
    entries
        .iter()
        .map(|text| Issuer::parse(text).map_err(|reason| DocumentError::Issuer { member, reason }))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};
    use serde_json::json;

    use super::*;
    use crate::json::arbitrary;

    fn example() -> ProtectedResourceMetadata {
        let issuer = Issuer::parse("https://as.example/realms/a").unwrap();
        ProtectedResourceMetadata::new(
            ResourceUri::parse("https://mcp.example/mcp").unwrap(),
            vec![issuer],
        )
    }

    fn parse(document: &Value) -> Result<ProtectedResourceMetadata, DocumentError> {
        ProtectedResourceMetadata::parse(document.to_string().as_bytes())
    }

    /// A1, A2: unset members are omitted.
    #[test]
    fn unset_members_are_omitted() {
        let written: Value = serde_json::from_slice(&example().to_json()).unwrap();
        let expected = json!({"resource": "https://mcp.example/mcp", "authorization_servers": ["https://as.example/realms/a"]});
        assert_eq!(written, expected);
    }

    /// A2: registered, language-tagged and unknown members survive a round trip.
    #[test]
    fn every_member_round_trips() {
        let document = json!({
            "resource": "https://mcp.example/mcp",
            "authorization_servers": ["https://as.example/", "https://other.example"],
            "jwks_uri": "https://mcp.example/jwks",
            "scopes_supported": ["a", "b"],
            "bearer_methods_supported": ["header"],
            "resource_signing_alg_values_supported": ["ES256"],
            "resource_name": "Name",
            "resource_name#de": "Der Name",
            "resource_documentation": "https://mcp.example/docs",
            "resource_policy_uri": "https://mcp.example/policy",
            "resource_tos_uri": "https://mcp.example/tos",
            "tls_client_certificate_bound_access_tokens": false,
            "authorization_details_types_supported": ["t"],
            "dpop_signing_alg_values_supported": ["ES256"],
            "dpop_bound_access_tokens_required": true,
            "signed_metadata": "e30.e30.c2ln",
            "unknown": {"kept": [null, 1.5, []]},
            "unknown_null": null,
        });
        let parsed = parse(&document).unwrap();
        assert_eq!(parsed.scopes_supported, ["a", "b"]);
        assert_eq!(parsed.extra["resource_name#de"], "Der Name");
        assert_eq!(
            serde_json::from_slice::<Value>(&parsed.to_json()).unwrap(),
            document
        );
    }

    /// A2: a known member that is `null` counts as missing; an unknown one is kept.
    #[test]
    fn known_members_that_are_null_are_omitted() {
        let expected = json!({
            "resource": "https://mcp.example/",
            "authorization_servers": ["https://as.example"],
            "unknown": null,
        });
        let mut document = expected.clone();
        for member in [
            "jwks_uri",
            "scopes_supported",
            "bearer_methods_supported",
            "dpop_bound_access_tokens_required",
        ] {
            document[member] = json!(null);
        }
        let parsed = parse(&document).unwrap();
        assert_eq!(parsed.bearer_methods_supported, None);
        assert_eq!(
            serde_json::from_slice::<Value>(&parsed.to_json()).unwrap(),
            expected
        );
    }

    /// A2: an empty list of bearer methods means that there is none (RFC 9728 section 2), which no
    /// list does not.
    #[test]
    fn no_bearer_method_differs_from_no_list() {
        let mut document = json!({"resource": "https://mcp.example/", "authorization_servers": ["https://as.example"]});
        assert_eq!(parse(&document).unwrap().bearer_methods_supported, None);
        document["bearer_methods_supported"] = json!([]);
        let parsed = parse(&document).unwrap();
        assert_eq!(parsed.bearer_methods_supported, Some(Vec::new()));
        assert_eq!(
            serde_json::from_slice::<Value>(&parsed.to_json()).unwrap(),
            document
        );
    }

    /// A2: a field wins over an unknown member of its name, also if it is not set.
    #[test]
    fn fields_win_over_unknown_members() {
        let mut metadata = example();
        let expected = metadata.to_json();
        metadata
            .extra
            .insert("resource".to_owned(), json!("https://other.example/"));
        metadata
            .extra
            .insert("bearer_methods_supported".to_owned(), json!(["query"]));
        metadata
            .extra
            .insert("jwks_uri".to_owned(), json!("https://other.example/jwks"));
        assert_eq!(metadata.to_json(), expected);
    }

    /// A2: empty arrays are omitted from known and unknown members.
    #[test]
    fn empty_arrays_are_omitted() {
        let mut document = json!({"resource": "https://mcp.example/", "authorization_servers": ["https://as.example"]});
        let expected = document.clone();
        for member in [
            "scopes_supported",
            "resource_signing_alg_values_supported",
            "authorization_details_types_supported",
            "dpop_signing_alg_values_supported",
            "unknown",
        ] {
            document[member] = json!([]);
        }
        let written = parse(&document).unwrap().to_json();
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), expected);
    }

    /// A1: a document without a resource (RFC 9728) or an authorization server (MCP) is rejected.
    #[test]
    fn required_members_are_required() {
        let resource = "https://mcp.example/mcp";
        let servers = json!(["https://as.example"]);
        for (document, code) in [
            (
                json!({"authorization_servers": servers}),
                "document.member_missing",
            ),
            (json!({"resource": resource}), "document.member_missing"),
            (
                json!({"resource": resource, "authorization_servers": null}),
                "document.member_missing",
            ),
            (
                json!({"resource": resource, "authorization_servers": []}),
                "document.member_empty",
            ),
            (
                json!({"resource": resource, "authorization_servers": "https://as.example"}),
                "document.member_type",
            ),
            (
                json!({"resource": resource, "authorization_servers": [7]}),
                "document.member_type",
            ),
            (
                json!({"resource": resource, "authorization_servers": ["as.example"]}),
                "document.member_issuer",
            ),
            (
                json!({"resource": resource, "authorization_servers": ["http://as.example"]}),
                "document.member_issuer",
            ),
            (
                json!({"resource": "/mcp", "authorization_servers": servers}),
                "document.resource",
            ),
            (
                json!({"resource": "https://mcp.example/#a", "authorization_servers": servers}),
                "document.resource",
            ),
            (
                json!({"resource": "", "authorization_servers": servers}),
                "document.member_empty",
            ),
        ] {
            assert_eq!(parse(&document).unwrap_err().code(), code, "{document}");
        }
    }

    #[test]
    fn other_values_than_an_object_are_rejected() {
        for (document, code) in [
            ("", "document.not_json"),
            ("{", "document.not_json"),
            ("{} x", "document.not_json"),
            ("\u{feff}{}", "document.not_json"),
            ("<html>", "document.not_json"),
            ("[]", "document.not_an_object"),
            ("[{}]", "document.not_an_object"),
            ("null", "document.not_an_object"),
            ("\"text\"", "document.not_an_object"),
            ("-5", "document.not_an_object"),
            ("5", "document.not_an_object"),
            ("5.5", "document.not_an_object"),
            ("true", "document.not_an_object"),
            (
                r#"{"resource":"https://a.example","resource":"https://b.example"}"#,
                "document.duplicate_member",
            ),
            (
                r#"{"x":{"y":[1]},"x":{"y":[1]},"z":2}"#,
                "document.duplicate_member",
            ),
        ] {
            let error = ProtectedResourceMetadata::parse(document.as_bytes()).unwrap_err();
            assert_eq!(error.code(), code, "{document}");
        }
        assert_eq!(
            ProtectedResourceMetadata::parse(b"{\"a\":\"\xff\"}"),
            Err(DocumentError::NotJson)
        );

        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        assert_eq!(
            ProtectedResourceMetadata::parse(&deep),
            Err(DocumentError::NotAnObject)
        );
        let deep_member = [br#"{"x":"#.to_vec(), deep, b"}".to_vec()].concat();
        assert_eq!(
            ProtectedResourceMetadata::parse(&deep_member),
            Err(DocumentError::NotJson)
        );
    }

    fn lists() -> impl Strategy<Value = [Vec<String>; 4]> {
        prop::array::uniform4(prop::collection::vec(any::<String>(), 0..3))
    }

    fn texts() -> impl Strategy<Value = [Option<String>; 6]> {
        prop::array::uniform6(option::of(any::<String>()))
    }

    proptest! {
        /// A2: any document round-trips.
        #[test]
        fn documents_round_trip(
            resource in "https://[a-z]{1,8}\\.example/[a-z0-9]{0,6}",
            authorization_servers in prop::collection::vec(arbitrary::issuer(), 1..3),
            bearer_methods_supported in option::of(prop::collection::vec(any::<String>(), 0..3)),
            lists in lists(),
            texts in texts(),
            tls_client_certificate_bound_access_tokens: Option<bool>,
            dpop_bound_access_tokens_required: Option<bool>,
            extra in arbitrary::extra(),
        ) {
            let [scopes_supported, signing_algorithms, details_types, dpop_algorithms] = lists;
            let [jwks_uri, resource_name, documentation, policy_uri, tos_uri, signed_metadata] = texts;
            let built = ProtectedResourceMetadata {
                resource: ResourceUri::parse(&resource).unwrap(),
                authorization_servers,
                jwks_uri,
                scopes_supported,
                bearer_methods_supported,
                resource_signing_alg_values_supported: signing_algorithms,
                resource_name,
                resource_documentation: documentation,
                resource_policy_uri: policy_uri,
                resource_tos_uri: tos_uri,
                tls_client_certificate_bound_access_tokens,
                authorization_details_types_supported: details_types,
                dpop_signing_alg_values_supported: dpop_algorithms,
                dpop_bound_access_tokens_required,
                signed_metadata,
                extra,
            };
            prop_assert_eq!(ProtectedResourceMetadata::parse(&built.to_json()), Ok(built));
        }
    }
}
