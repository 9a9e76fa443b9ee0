//! [`insecure_endpoints`]: checks all endpoints of an authorization server.

use portcullis_metadata::AuthorizationServerMetadata;
use serde_json::{Map, Value};
use url::Url;

use crate::url_policy::{ChainPolicy, UrlPolicyError};

/// An endpoint whose URL is neither `https` nor, if the policy allows loopback, `http` with a
/// loopback host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InsecureEndpoint {
    /// The metadata member, such as `token_endpoint` or `mtls_endpoint_aliases.token_endpoint`. The
    /// server may have chosen the name.
    pub member: String,
    /// The URL.
    pub url: Url,
}

/// Returns the endpoints whose scheme the policy forbids: first those of RFC 8414, RFC 9126 and
/// `jwks_uri`, then all other members whose name ends in `_endpoint`, such as
/// `device_authorization_endpoint` (RFC 8628) and those of OpenID Connect, and then those of
/// `mtls_endpoint_aliases` (RFC 8705 section 5).
///
/// Only schemes are checked. A private address is rejected when it is used, because a server may
/// publish endpoints for its own network. Pages for users, such as `op_tos_uri`, and values that
/// are not absolute URLs are ignored.
pub fn insecure_endpoints(
    metadata: &AuthorizationServerMetadata,
    policy: &ChainPolicy,
) -> Vec<InsecureEndpoint> {
    let known = [
        ("authorization_endpoint", &metadata.authorization_endpoint),
        ("introspection_endpoint", &metadata.introspection_endpoint),
        ("jwks_uri", &metadata.jwks_uri),
        (
            "pushed_authorization_request_endpoint",
            &metadata.pushed_authorization_request_endpoint,
        ),
        ("registration_endpoint", &metadata.registration_endpoint),
        ("revocation_endpoint", &metadata.revocation_endpoint),
        ("token_endpoint", &metadata.token_endpoint),
    ];
    let known = known
        .into_iter()
        .filter_map(|(member, url)| Some((member.to_owned(), url.clone()?)));
    let aliases = metadata
        .extra
        .get("mtls_endpoint_aliases")
        .and_then(Value::as_object);
    let aliases = aliases.into_iter().flat_map(endpoints_of);
    let aliases = aliases.map(|(member, url)| (format!("mtls_endpoint_aliases.{member}"), url));
    let others = endpoints_of(&metadata.extra)
        .map(|(member, url)| (member.to_owned(), url))
        .chain(aliases);
    known
        .chain(others)
        .filter(|(_, url)| policy.of(url).check(url) == Err(UrlPolicyError::Scheme))
        .map(|(member, url)| InsecureEndpoint { member, url })
        .collect()
}

fn endpoints_of(members: &Map<String, Value>) -> impl Iterator<Item = (&str, Url)> {
    members
        .iter()
        .filter(|(member, _)| member.ends_with("_endpoint"))
        .filter_map(|(member, value)| Some((member.as_str(), Url::parse(value.as_str()?).ok()?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::UrlPolicy;

    const PUBLIC: UrlPolicy = UrlPolicy::Peer {
        loopback_http: false,
        private_addresses: false,
    };
    const LOOPBACK: UrlPolicy = UrlPolicy::Peer {
        loopback_http: true,
        private_addresses: false,
    };

    fn insecure(members: Value, policy: UrlPolicy) -> Vec<String> {
        let mut document = json!({ "issuer": "https://auth.example.com" });
        document
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let metadata = AuthorizationServerMetadata::parse(document.to_string().as_bytes()).unwrap();
        insecure_endpoints(&metadata, &policy.into())
            .into_iter()
            .map(|endpoint| endpoint.member)
            .collect()
    }

    /// G9: every endpoint is checked, including those that this workspace does not use.
    #[test]
    fn an_http_endpoint_in_any_member_is_found() {
        for member in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "introspection_endpoint",
            "revocation_endpoint",
            "pushed_authorization_request_endpoint",
            "jwks_uri",
            "device_authorization_endpoint",
            "userinfo_endpoint",
            "end_session_endpoint",
            "backchannel_authentication_endpoint",
        ] {
            for policy in [UrlPolicy::Operator, PUBLIC, LOOPBACK] {
                for url in [
                    "http://auth.example.com/a",
                    "http://user@auth.example.com/a",
                ] {
                    assert_eq!(
                        insecure(json!({ member: url }), policy),
                        [member],
                        "{policy:?} {url}"
                    );
                }
                assert!(
                    insecure(json!({ member: "https://auth.example.com/a" }), policy).is_empty(),
                    "{member}"
                );
            }
        }
        let aliases =
            json!({ "mtls_endpoint_aliases": { "token_endpoint": "http://mtls.example.com/" } });
        assert_eq!(
            insecure(aliases, PUBLIC),
            ["mtls_endpoint_aliases.token_endpoint"]
        );

        let several = json!({ "token_endpoint": "http://a.example/", "userinfo_endpoint": "file:///etc/passwd" });
        assert_eq!(
            insecure(several, PUBLIC),
            ["token_endpoint", "userinfo_endpoint"]
        );
    }

    /// G6, G9: http to loopback is accepted if the policy allows loopback.
    #[test]
    fn the_policy_decides_on_http_to_loopback() {
        for url in [
            "http://127.0.0.1:9/token",
            "http://localhost/token",
            "http://[::1]/token",
        ] {
            for (policy, is_fine) in [
                (UrlPolicy::Operator, true),
                (LOOPBACK, true),
                (PUBLIC, false),
            ] {
                assert_eq!(
                    insecure(json!({ "token_endpoint": url }), policy).is_empty(),
                    is_fine,
                    "{url} {policy:?}"
                );
            }
        }
    }

    /// Members that no client requests are ignored.
    #[test]
    fn pages_and_values_that_are_not_urls_are_ignored() {
        let members = json!({
            "op_tos_uri": "http://auth.example.com/terms",
            "service_documentation": "http://auth.example.com/docs",
            "end_session_endpoint": "/logout",
            "userinfo_endpoint": "",
            "check_session_endpoint": null,
            "mtls_endpoint_aliases": ["http://a.example/"],
            "introspection_endpoint": "https://10.0.0.1/introspect",
        });
        assert!(insecure(members, PUBLIC).is_empty());
    }
}
