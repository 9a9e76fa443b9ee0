//! [`KnownIssuer`]: the providers with known differences from MCP's authorization profile.

use std::fmt;

use portcullis_metadata::Issuer;
use url::Url;

/// A provider that differs from MCP's authorization profile, and what requests to it need.
///
/// An issuer matches only by its exact host, or by a tenant host below the provider's domain. The
/// caller must have compared it with the metadata's `issuer`, so that a server cannot pretend to be
/// a provider.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownIssuer {
    /// The display name.
    pub name: &'static str,
    matches: Match,
    /// Whether `resource` is omitted, because the provider rejects or ignores it.
    pub omits_resource: bool,
    /// Whether the provider supports PKCE with S256 although its metadata does not list it.
    pub assumes_pkce: bool,
    /// Whether `prompt=consent` is sent with the scope `offline_access`. Providers that do not need
    /// it would ask for consent that only an administrator can give.
    pub(crate) prompts_consent: bool,
    /// Whether the resource is also sent as `audience`.
    pub(crate) sends_audience: bool,
    /// Further parameters of the authorization request.
    pub(crate) parameters: &'static [(&'static str, &'static str)],
    /// Whether a scope without the name of an API belongs to Microsoft Graph.
    pub(crate) defaults_to_graph: bool,
    /// The provider's documentation of the differences.
    pub source: &'static str,
}

/// How an issuer is matched.
#[derive(Debug, PartialEq, Eq)]
enum Match {
    /// The identifier. Its endpoints are at these hosts.
    Exact {
        issuer: &'static str,
        endpoint_hosts: &'static [&'static str],
    },
    /// The host, with any tenant in the path.
    Host(&'static str),
    /// Any host below this domain.
    TenantOf(&'static str),
}

const MICROSOFT: KnownIssuer = KnownIssuer {
    name: "Microsoft Entra ID",
    matches: Match::Host("login.microsoftonline.com"),
    // AADSTS9010010: `resource` does not match the requested scopes.
    omits_resource: true,
    assumes_pkce: true,
    prompts_consent: false,
    sends_audience: false,
    parameters: &[],
    defaults_to_graph: true,
    source: "https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow",
};

/// All known providers.
const KNOWN: &[KnownIssuer] = &[
    MICROSOFT,
    // https://learn.microsoft.com/en-us/entra/identity-platform/authentication-national-cloud
    KnownIssuer {
        matches: Match::Host("login.microsoftonline.us"),
        ..MICROSOFT
    },
    KnownIssuer {
        matches: Match::Host("login.partner.microsoftonline.cn"),
        ..MICROSOFT
    },
    // https://learn.microsoft.com/en-us/entra/external-id/customers/concept-custom-url-domain
    KnownIssuer {
        name: "Microsoft Entra External ID",
        matches: Match::TenantOf("ciamlogin.com"),
        ..MICROSOFT
    },
    KnownIssuer {
        name: "Google",
        // https://accounts.google.com/.well-known/openid-configuration
        matches: Match::Exact {
            issuer: "https://accounts.google.com",
            endpoint_hosts: &[
                "accounts.google.com",
                "oauth2.googleapis.com",
                "www.googleapis.com",
            ],
        },
        // There is no parameter `resource`.
        omits_resource: true,
        assumes_pkce: false,
        prompts_consent: true,
        sends_audience: false,
        parameters: &[("access_type", "offline"), ("prompt", "consent")],
        defaults_to_graph: false,
        source: "https://developers.google.com/identity/protocols/oauth2/web-server",
    },
    KnownIssuer {
        name: "Auth0",
        matches: Match::TenantOf("auth0.com"),
        omits_resource: false,
        assumes_pkce: false,
        prompts_consent: true,
        sends_audience: true,
        parameters: &[],
        defaults_to_graph: false,
        source: "https://auth0.com/docs/api/authentication/authorization-code-flow/authorize-application",
    },
];

impl KnownIssuer {
    /// Returns the provider of an issuer, if it is known.
    pub fn find(issuer: &Issuer) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.matches.is(issuer))
    }

    /// Returns the provider of an endpoint, by its host alone.
    pub(crate) fn of_endpoint(endpoint: &Url) -> Option<&'static Self> {
        let host = endpoint.host_str()?.trim_end_matches('.');
        KNOWN
            .iter()
            .find(|known| known.matches.is_endpoint_host(host))
    }
}

/// Whether a host is below a domain, and not the domain itself.
fn is_below(host: &str, domain: &str) -> bool {
    let tenant = host
        .strip_suffix(domain)
        .and_then(|rest| rest.strip_suffix('.'));
    tenant.is_some_and(|tenant| !tenant.is_empty())
}

/// Lists the differences for the user.
impl fmt::Display for KnownIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        let mut separator = "";
        let mut item = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let written = write!(f, "{separator} {text}");
            separator = ",";
            written
        };
        if self.omits_resource {
            item(f, format_args!("without `resource`"))?;
        }
        if self.assumes_pkce {
            item(
                f,
                format_args!("with PKCE, which its metadata does not list"),
            )?;
        }
        if self.sends_audience {
            item(f, format_args!("with `audience`"))?;
        }
        for (name, value) in self.parameters {
            item(f, format_args!("with `{name}={value}`"))?;
        }
        write!(f, " ({})", self.source)
    }
}

impl Match {
    fn is(&self, issuer: &Issuer) -> bool {
        // Another port, or plain http, is another server.
        let url = issuer.url();
        let host = url
            .host_str()
            .filter(|_| url.scheme() == "https" && url.port().is_none());
        match self {
            Self::Exact { issuer: known, .. } => issuer.as_str() == *known,
            Self::Host(known) => host == Some(known),
            Self::TenantOf(domain) => host.is_some_and(|host| is_below(host, domain)),
        }
    }

    /// Whether the endpoints of a matching issuer can be at a host.
    fn is_endpoint_host(&self, host: &str) -> bool {
        match self {
            Self::Exact { endpoint_hosts, .. } => endpoint_hosts.contains(&host),
            Self::Host(known) => host == *known,
            Self::TenantOf(domain) => is_below(host, domain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(issuer: &str) -> Option<&'static str> {
        KnownIssuer::find(&Issuer::parse(issuer).unwrap()).map(|known| known.name)
    }

    /// G4: providers are recognized by the exact issuer or host, and tenants at a label boundary.
    #[test]
    fn issuers_are_recognized() {
        for (issuer, expected) in [
            (
                "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
                "Microsoft Entra ID",
            ),
            (
                "https://login.microsoftonline.us/t/v2.0",
                "Microsoft Entra ID",
            ),
            (
                "https://contoso.ciamlogin.com/t/v2.0",
                "Microsoft Entra External ID",
            ),
            ("https://accounts.google.com", "Google"),
            ("https://tenant.auth0.com/", "Auth0"),
            ("https://tenant.eu.auth0.com/", "Auth0"),
        ] {
            assert_eq!(name(issuer), Some(expected), "{issuer}");
        }
        for issuer in [
            "https://login.microsoftonline.com.evil.example/t/v2.0",
            "https://evil.login.microsoftonline.com/t/v2.0",
            "https://login.microsoftonline.com:8443/t/v2.0",
            "https://accounts.google.com/",
            "https://accounts.google.com.evil.example",
            "https://evilauth0.com/",
            "https://auth0.com/",
            "https://tenant.auth0.com.evil.example/",
            "http://localhost/accounts.google.com",
        ] {
            assert_eq!(name(issuer), None, "{issuer}");
        }
    }

    /// Each entry has a source, which its text contains.
    #[test]
    fn each_entry_has_a_source() {
        for known in KNOWN {
            assert!(known.source.starts_with("https://"));
            assert!(known.to_string().ends_with(&format!("({})", known.source)));
            assert!(known.to_string().contains(": with"), "{known}");
        }
    }
}
