//! Microsoft Entra ID: its two issuers per tenant, its template, and the lines to write for them.
//!
//! Sources:
//! <https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference> for
//! `iss` and `aud`, <https://learn.microsoft.com/en-us/entra/identity-platform/access-tokens> for
//! the template and the token versions,
//! <https://learn.microsoft.com/en-us/entra/identity-platform/authentication-national-cloud> for
//! the hosts and the portals of national clouds.

use crate::{
    file::{Issuer, Validation},
    shown_url,
};
use anyhow::{bail, ensure};
use portcullis_metadata::syntax::is_uuid;
use portcullis_verifier::ApplicationAudience;
use url::Url;

/// The issuer hosts of a cloud, and where its applications are registered.
struct Cloud {
    host_v1: &'static str,
    host_v2: &'static str,
    portal: &'static str,
}

const GLOBAL: Cloud = Cloud {
    host_v1: "sts.windows.net",
    host_v2: "login.microsoftonline.com",
    portal: "https://entra.microsoft.com",
};
const US_GOVERNMENT: Cloud = Cloud {
    host_v1: GLOBAL.host_v1,
    host_v2: "login.microsoftonline.us",
    portal: "https://portal.azure.us",
};
const CHINA: Cloud = Cloud {
    host_v1: "sts.chinacloudapi.cn",
    host_v2: "login.partner.microsoftonline.cn",
    portal: "https://portal.azure.cn",
};
/// All clouds, the global one first: another one shares its host of version 1.0.
const CLOUDS: [&Cloud; 3] = [&GLOBAL, &US_GOVERNMENT, &CHINA];

/// The placeholder for an unknown tenant.
pub(super) const TENANT: &str = "<tenant ID>";

/// The names that stand for the tenants of others in URLs of Entra.
pub(super) const SHARED_TENANTS: [&str; 3] = ["common", "organizations", "consumers"];

/// Returns the issuer of version 2.0 of a tenant in the global cloud.
pub(super) fn global_issuer(tenant: &str) -> String {
    issuer_v2(GLOBAL.host_v2, tenant)
}

/// Returns the issuer of version 2.0 of a tenant in the cloud of a URL, or in the global one.
pub(super) fn issuer_in_cloud_of(url: &str, tenant: &str) -> String {
    let cloud = Tenant::of(url).map_or(&GLOBAL, |known| known.cloud);
    issuer_v2(cloud.host_v2, tenant)
}

/// Returns the tenant in a URL of Entra and its issuer of version 2.0, if the cloud is a national
/// one, which a provider names by its issuer.
pub(super) fn in_national_cloud(url: &str) -> Option<(String, String)> {
    let tenant = Tenant::of(url).filter(|known| known.cloud.host_v2 != GLOBAL.host_v2)?;
    Some((tenant.tenant_id().to_owned(), tenant.issuer_v2()))
}

/// Returns where the applications of the cloud of a URL are registered, or those of the global one.
pub(super) fn portal(url: &str) -> &'static str {
    Tenant::of(url).map_or(&GLOBAL, |known| known.cloud).portal
}

/// Returns whether a URL is one of Entra.
pub(super) fn is_entra(url: &Url) -> bool {
    let is_host = |host: &str| {
        CLOUDS
            .iter()
            .any(|cloud| host == cloud.host_v1 || host == cloud.host_v2)
    };
    url.host_str().is_some_and(is_host)
}

/// Returns whether the URL names no tenant, but the tenants of others.
pub(super) fn is_shared_tenant(url: &Url) -> bool {
    let tenant = url
        .path_segments()
        .and_then(|mut segments| segments.next())
        .unwrap_or_default()
        .to_ascii_lowercase();
    is_entra(url) && SHARED_TENANTS.contains(&&*tenant)
}

/// Returns whether this is the issuer of version 2.0 of a tenant in one of the clouds.
pub(super) fn is_issuer_of(issuer: &str, tenant: &str) -> bool {
    CLOUDS
        .iter()
        .any(|cloud| issuer == issuer_v2(cloud.host_v2, tenant))
}

/// Rejects the template that Entra publishes as the issuer of its multi-tenant metadata.
pub(super) fn check_template(issuer: &str) -> anyhow::Result<()> {
    ensure!(
        !issuer.to_ascii_lowercase().contains("{tenant"),
        "the issuer is the template in Entra's metadata, and no token has it as `iss`; write the ID of your tenant: issuer \
         = {:?}",
        issuer_in_cloud_of(issuer, TENANT)
    );
    Ok(())
}

/// Rejects an issuer at a host of Entra ID that is not the `iss` of its tokens.
pub(super) fn check_issuer(issuer: &str) -> anyhow::Result<()> {
    match problem(issuer).filter(|_| !can_be_b2c(issuer)) {
        Some(problem) => bail!("{:?} {problem}", shown_url(issuer)),
        None => Ok(()),
    }
}

/// Returns the problem of an issuer that no token of Entra ID has, but tokens of the former Azure
/// AD B2C at the same host could have.
pub(super) fn doubt(issuer: &str) -> Option<String> {
    problem(issuer).filter(|_| can_be_b2c(issuer))
}

/// Returns the problem of an issuer at a host of Entra ID that is not the `iss` of its tokens, and
/// the lines to write.
fn problem(issuer: &str) -> Option<String> {
    Tenant::of(issuer)?.issuer_problem(issuer)
}

/// Azure AD B2C has issuers with a slash after the version, and with `tfp` before the tenant:
/// <https://github.com/AzureAD/microsoft-identity-web/wiki/Azure-AD-B2C-issuer-claim-support>.
fn can_be_b2c(issuer: &str) -> bool {
    let is_of_policy = Url::parse(issuer).is_ok_and(|url| url.path().starts_with("/tfp/"));
    is_of_policy || issuer.ends_with("/v2.0/")
}

/// Returns the warning about an issuer of version 2.0 without the client ID of the application,
/// which all its tokens have as `aud`.
pub(super) fn audience_warning(issuer: &Issuer, key: &str) -> Option<String> {
    let tenant = Tenant::of(&issuer.issuer)?;
    let is_of_v2 = tenant.version == Version::V2 && tenant.issuer_problem(&issuer.issuer).is_none();
    let mut audiences = issuer.audiences.names();
    let is_named = audiences.any(|audience| ApplicationAudience::parse(audience).is_ok());
    // The response of an introspection endpoint is not one of Entra ID.
    let is_checked = issuer.validate != Validation::Introspection;
    (is_of_v2 && is_checked && !is_named).then(|| {
        format!(
            "{key}.audiences lacks the client ID of the application, which all tokens of version 2.0 have as `aud` in place of the \
             resource URL, so that every token is rejected; write audiences = [\"<application (client) ID>\"]"
        )
    })
}

/// Returns what `check` explains about the Entra issuers of a configuration.
pub(super) fn notes<'a>(issuers: &'a [Issuer]) -> Vec<String> {
    let entra = |(position, issuer): (usize, &'a Issuer)| {
        let tenant = Tenant::of(&issuer.issuer)?;
        let is_sound = tenant.issuer_problem(&issuer.issuer).is_none();
        is_sound.then_some((position, issuer, tenant))
    };
    let entra: Vec<_> = issuers.iter().enumerate().filter_map(entra).collect();
    let has_other_version = |tenant: &Tenant| {
        entra
            .iter()
            .any(|(_, _, other)| other.id == tenant.id && other.version != tenant.version)
    };
    let notes = entra.iter().flat_map(|(position, issuer, tenant)| {
        let version_note = (!has_other_version(tenant)).then(|| tenant.version_note());
        let key = format!("issuer[{position}]");
        [version_note, tenant.audience_note(issuer)]
            .into_iter()
            .flatten()
            .map(move |note| format!("{key}{note}"))
    });
    notes.collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// The tenant that an Entra issuer names.
struct Tenant {
    cloud: &'static Cloud,
    version: Version,
    id: String,
}

impl Tenant {
    fn of(issuer: &str) -> Option<Self> {
        let url = Url::parse(issuer).ok()?;
        let host = url.host_str()?;
        let (cloud, version) = CLOUDS.into_iter().find_map(|cloud| {
            let versions = [(cloud.host_v1, Version::V1), (cloud.host_v2, Version::V2)];
            versions
                .into_iter()
                .find(|(known, _)| *known == host)
                .map(|(_, version)| (cloud, version))
        })?;
        let id = url
            .path_segments()?
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        Some(Self { cloud, version, id })
    }

    /// Returns the issuer's tenant ID. Tokens never have a domain name or a name such as `common`
    /// in its place.
    fn tenant_id(&self) -> &str {
        if is_uuid(&self.id) { &self.id } else { TENANT }
    }

    fn issuer_v1(&self) -> String {
        format!("https://{}/{}/", self.cloud.host_v1, self.tenant_id())
    }

    fn issuer_v2(&self) -> String {
        issuer_v2(self.cloud.host_v2, self.tenant_id())
    }

    /// Returns the problem of an issuer that is not the `iss` of this tenant, and the lines to
    /// write.
    fn issuer_problem(&self, configured: &str) -> Option<String> {
        let is_exact = match self.version {
            Version::V1 => configured == self.issuer_v1(),
            Version::V2 => configured == self.issuer_v2(),
        };
        let exception = match can_be_b2c(configured) {
            true => " (only the former Azure AD B2C had such issuers)",
            false => "",
        };
        (!is_exact).then(|| {
            format!(
                "is not an `iss` of Entra ID{exception}, so that its tokens are rejected; write, for tokens of version 2.0, issuer = {:?} \
                 (with requestedAccessTokenVersion = 2 in the manifest of the application), or, for version 1.0, issuer = {:?}",
                self.issuer_v2(),
                self.issuer_v1()
            )
        })
    }

    /// Returns a note for an issuer that only tokens of one version have.
    fn version_note(&self) -> String {
        match self.version {
            Version::V2 => format!(
                " accepts Entra's tokens of version 2.0 only. An application gets tokens of version 1.0, with the issuer \
                 {:?}, until its manifest has requestedAccessTokenVersion = 2; set that, or add an [[issuer]] with issuer \
                 = {:?}",
                self.issuer_v1(),
                self.issuer_v1()
            ),
            Version::V1 => format!(
                " accepts Entra's tokens of version 1.0 only. MCP clients sign in at version 2.0: set \
                 requestedAccessTokenVersion = 2 in the manifest of the application, and write issuer = {:?}",
                self.issuer_v2()
            ),
        }
    }

    /// Returns a note for an issuer of version 1.0 whose audience is not configured. The application
    /// ID URI can be any URI.
    fn audience_note(&self, issuer: &Issuer) -> Option<String> {
        let is_named = issuer.audiences.names().next().is_some();
        (self.version == Version::V1 && !is_named).then(|| {
            ".audiences: `aud` in these tokens is the application ID URI; unless that is the resource URL, write audiences = \
             [\"api://<application (client) ID>\"]"
                .to_owned()
        })
    }
}

fn issuer_v2(host: &str, tenant: &str) -> String {
    format!("https://{host}/{tenant}/v2.0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";

    fn issuer(issuer: &str, audiences: &str) -> Issuer {
        toml::from_str(&format!("issuer = \"{issuer}\"\naudiences = [{audiences}]")).unwrap()
    }

    fn error_of(issuer: &str) -> String {
        check_issuer(issuer).unwrap_err().to_string()
    }

    fn notes_of(text: &str) -> String {
        notes(&[issuer(text, "\"11112222-bbbb-3333-cccc-4444dddd5555\"")]).join("\n")
    }

    /// An issuer that no token of Entra has is rejected, with the lines to write.
    #[test]
    fn wrong_issuers_are_rejected() {
        let v2 = format!("issuer = \"https://login.microsoftonline.com/{ID}/v2.0\"");
        let v1 = format!("issuer = \"https://sts.windows.net/{ID}/\"");
        for wrong in [
            format!("https://login.microsoftonline.com/{ID}"),
            format!("https://login.microsoftonline.com/{ID}/"),
            format!("https://login.microsoftonline.com/{ID}/oauth2/v2.0/authorize"),
            format!("https://sts.windows.net/{ID}"),
        ] {
            let error = error_of(&wrong);
            assert!(error.contains("its tokens are rejected"), "{error}");
            assert!(error.contains(&v2), "{error}");
            assert!(error.contains(&v1), "{error}");
            assert_eq!(notes_of(&wrong), "", "{wrong}");
        }
        for alias in ["common", "organizations", "contoso.onmicrosoft.com"] {
            let error = error_of(&format!("https://login.microsoftonline.com/{alias}/v2.0"));
            assert!(
                error.contains("\"https://login.microsoftonline.com/<tenant ID>/v2.0\""),
                "{error}"
            );
        }
    }

    /// An issuer that Azure AD B2C had is not rejected.
    #[test]
    fn issuers_of_b2c_are_doubtful() {
        for doubtful in [
            format!("https://login.microsoftonline.com/{ID}/v2.0/"),
            format!("https://login.microsoftonline.com/tfp/{ID}/b2c_1_sign_in/v2.0/"),
        ] {
            assert!(check_issuer(&doubtful).is_ok(), "{doubtful}");
            let doubt = doubt(&doubtful).unwrap();
            assert!(
                doubt.contains("is not an `iss` of Entra ID (only the former Azure AD B2C had"),
                "{doubt}"
            );
        }
        for sound in [
            format!("https://login.microsoftonline.com/{ID}/v2.0"),
            format!("https://sts.windows.net/{ID}/"),
            format!("https://tenant.b2clogin.com/{ID}/v2.0/"),
        ] {
            assert!(check_issuer(&sound).is_ok(), "{sound}");
            assert_eq!(doubt(&sound), None);
        }
    }

    /// A correct issuer is explained as well, until both versions are configured.
    #[test]
    fn versions_are_explained() {
        let v2 = format!("https://login.microsoftonline.com/{ID}/v2.0");
        let v1 = format!("https://sts.windows.net/{ID}/");
        assert!(notes_of(&v2).contains("requestedAccessTokenVersion = 2"));
        assert!(notes_of(&v2).contains(&v1));
        assert!(notes_of(&v1).contains(&v2));
        let name = "\"api://mcp\"";
        assert!(notes(&[issuer(&v2, name), issuer(&v1, name)]).is_empty());
        assert!(notes_of("https://login.microsoftonline.com.example/common").is_empty());
        assert!(notes_of("https://auth.example.com/common").is_empty());
    }

    /// National clouds keep their hosts.
    #[test]
    fn clouds_are_kept_apart() {
        let error = error_of(&format!("https://login.microsoftonline.us/{ID}"));
        assert!(
            error.contains(&format!("https://login.microsoftonline.us/{ID}/v2.0")),
            "{error}"
        );
        assert!(
            error.contains(&format!("https://sts.windows.net/{ID}/")),
            "{error}"
        );
        let error = error_of(&format!("https://login.partner.microsoftonline.cn/{ID}"));
        assert!(
            error.contains(&format!("https://sts.chinacloudapi.cn/{ID}/")),
            "{error}"
        );
        let note = notes_of(&format!("https://sts.chinacloudapi.cn/{ID}/"));
        assert!(
            note.contains(&format!(
                "https://login.partner.microsoftonline.cn/{ID}/v2.0"
            )),
            "{note}"
        );
    }

    /// C6, J9: without the application's name in `audiences`, no token of version 2.0 is accepted.
    #[test]
    fn missing_audiences_are_named() {
        let v2 = format!("https://login.microsoftonline.com/{ID}/v2.0");
        for audiences in ["", "\"https://mcp.example.com/mcp\""] {
            let warning = audience_warning(&issuer(&v2, audiences), "issuer[0]").unwrap();
            assert!(
                warning.starts_with("issuer[0].audiences lacks the client ID"),
                "{warning}"
            );
            assert!(
                warning.ends_with("write audiences = [\"<application (client) ID>\"]"),
                "{warning}"
            );
        }
        let other = [
            issuer(&v2, "\"11112222-bbbb-3333-cccc-4444dddd5555\""),
            issuer(&v2, "\"api://mcp\", \"https://mcp.example.com/mcp\""),
            issuer(&format!("{v2}/"), ""),
            issuer(&format!("https://sts.windows.net/{ID}/"), ""),
            issuer("https://auth.example.com/v2.0", ""),
        ];
        for other in other {
            assert_eq!(
                audience_warning(&other, "issuer[0]"),
                None,
                "{}",
                other.issuer
            );
        }
        let mut introspected = issuer(&v2, "");
        introspected.validate = Validation::Introspection;
        assert_eq!(audience_warning(&introspected, "issuer[0]"), None);
    }

    /// J9: the applications of a national cloud are registered in its own portal.
    #[test]
    fn clouds_have_portals() {
        for (host, portal) in [
            ("login.microsoftonline.com", "https://entra.microsoft.com"),
            ("login.microsoftonline.us", "https://portal.azure.us"),
            (
                "login.partner.microsoftonline.cn",
                "https://portal.azure.cn",
            ),
            ("127.0.0.1:9000", "https://entra.microsoft.com"),
        ] {
            assert_eq!(super::portal(&format!("https://{host}/{ID}/v2.0")), portal);
        }
    }

    /// C6: in version 1.0, the application ID URI can be any URI. The note is therefore given only
    /// if no audience is configured.
    #[test]
    fn audiences_of_version_1_are_explained_once() {
        let v1 = format!("https://sts.windows.net/{ID}/");
        let is_about_audiences = |audiences: &str| {
            let notes = notes(&[issuer(&v1, audiences)]);
            notes.iter().any(|note| {
                note.contains(".audiences: ") && note.contains("unless that is the resource URL")
            })
        };
        assert!(is_about_audiences(""));
        for audience in ["\"https://mcp.example.com/mcp\"", "\"api://mcp\""] {
            assert!(!is_about_audiences(audience), "{audience}");
        }
    }

    /// C5: the template is rejected as an issuer.
    #[test]
    fn the_template_is_rejected() {
        for template in [
            "https://login.microsoftonline.com/{tenantid}/v2.0",
            "https://sts.windows.net/{tenantId}/",
        ] {
            assert!(
                check_template(template)
                    .unwrap_err()
                    .to_string()
                    .contains("<tenant ID>/v2.0"),
                "{template}"
            );
        }
        let national = check_template("https://login.microsoftonline.us/{tenantid}/v2.0");
        let error = national.unwrap_err().to_string();
        assert!(
            error.contains("https://login.microsoftonline.us/<tenant ID>/v2.0"),
            "{error}"
        );
        assert!(check_template("https://login.microsoftonline.com/common/v2.0").is_ok());
    }
}
