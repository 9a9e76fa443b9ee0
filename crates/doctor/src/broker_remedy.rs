//! The remedy for authorization servers at which MCP clients cannot register.

use portcullis_metadata::Issuer;

/// The page that explains the remedy.
const PAGE: &str = "docs/guides/broker.md";

/// A provider at which no MCP client can register.
struct Known {
    name: &'static str,
    /// Its kind in the configuration of the broker.
    kind: &'static str,
    is: fn(host: &str, path: &str) -> bool,
}

const KNOWN: [Known; 6] = [
    Known {
        name: "Microsoft Entra ID",
        kind: "entra",
        is: |host, _| {
            matches!(
                host,
                "login.microsoftonline.com"
                    | "login.microsoftonline.us"
                    | "login.partner.microsoftonline.cn"
                    | "sts.windows.net"
                    | "sts.chinacloudapi.cn"
            )
        },
    },
    Known {
        name: "Microsoft Entra External ID",
        kind: "oidc",
        is: |host, _| host.ends_with(".ciamlogin.com"),
    },
    Known {
        name: "Google",
        kind: "google",
        is: |host, _| host == "accounts.google.com",
    },
    Known {
        name: "GitHub",
        kind: "github",
        is: |host, _| host == "github.com",
    },
    Known {
        name: "Amazon Cognito",
        kind: "cognito",
        is: |host, _| host.starts_with("cognito-idp.") && host.ends_with(".amazonaws.com"),
    },
    Known {
        name: "the organization of Okta",
        kind: "okta",
        is: |host, path| {
            (host.ends_with(".okta.com") || host.ends_with(".oktapreview.com")) && path == "/"
        },
    },
];

/// Returns the name of a provider at which no MCP client can register.
pub(crate) fn provider_without_registration(issuer: &Issuer) -> Option<&'static str> {
    find(issuer).map(|known| known.name)
}

/// Returns the remedy for an issuer at which clients cannot register: an authorization server in
/// front of it, at which they can.
pub(crate) fn broker(issuer: &Issuer) -> String {
    let kind = find(issuer).map_or("oidc", |known| known.kind);
    format!(
        "let Portcullis issue the tokens and sign users in there: a [broker] with a provider of kind = \"{kind}\", \
         which `portcullis init --broker` writes ({PAGE})"
    )
}

fn find(issuer: &Issuer) -> Option<&'static Known> {
    let host = issuer.url().host_str()?.trim_end_matches('.');
    let path = issuer.url().path();
    KNOWN.iter().find(|known| (known.is)(host, path))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn providers_are_recognized_by_their_hosts() {
        for (issuer, expected) in [
            (
                "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
                Some(("Microsoft Entra ID", "entra")),
            ),
            (
                "https://sts.windows.net/aaaabbbb-0000-cccc-1111-dddd2222eeee/",
                Some(("Microsoft Entra ID", "entra")),
            ),
            ("https://accounts.google.com", Some(("Google", "google"))),
            ("https://github.com/login/oauth", Some(("GitHub", "github"))),
            (
                "https://example.okta.com",
                Some(("the organization of Okta", "okta")),
            ),
            ("https://example.okta.com/oauth2/default", None),
            ("https://accounts.google.com.a.example", None),
            ("https://auth.example.com", None),
        ] {
            let issuer = Issuer::parse(issuer).unwrap();
            assert_eq!(
                provider_without_registration(&issuer),
                expected.map(|(name, _)| name),
                "{issuer}"
            );
            let kind = expected.map_or("oidc", |(_, kind)| kind);
            assert!(broker(&issuer).contains(&format!("\"{kind}\"")), "{issuer}");
        }
    }

    #[test]
    fn the_page_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(root.join(PAGE).is_file(), "{PAGE}");
    }
}
