//! URLs of Keycloak's pages in place of an issuer.

use anyhow::bail;
use url::Url;

use crate::shown_url;

/// Rejects the URL of a console of Keycloak: that of administrators, `/admin/<realm>/console`, or
/// that of users, `/realms/<realm>/account`. The text need not be a URL.
pub(super) fn check(issuer: &str) -> anyhow::Result<()> {
    let Some((prefix, realm)) = Url::parse(issuer).ok().and_then(|url| of_page(&url)) else {
        return Ok(());
    };
    bail!(
        "{:?} is a page of Keycloak; write the issuer of the realm, {:?}",
        shown_url(issuer),
        format!("{prefix}/realms/{realm}")
    )
}

/// Returns what is before the realm in its issuer, and the realm.
fn of_page(url: &Url) -> Option<(String, String)> {
    let segments: Vec<&str> = url.path_segments()?.collect();
    let start = |position: usize| {
        let path = segments[..position]
            .iter()
            .map(|segment| format!("/{segment}"));
        format!(
            "{}{}",
            url.origin().ascii_serialization(),
            path.collect::<String>()
        )
    };
    segments
        .windows(3)
        .enumerate()
        .find_map(|(position, part)| {
            let realm = match *part {
                // The realm of the path is that of the administrator. The page has the other in its
                // fragment.
                ["admin", _, "console"] => {
                    let mut parts = url.fragment().unwrap_or_default().split('/');
                    parts.find(|part| !part.is_empty()).unwrap_or("<realm>")
                }
                ["realms", realm, "account"] => realm,
                _ => return None,
            };
            Some((start(position), realm.to_owned()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: the issuer of the realm is written, also below a path.
    #[test]
    fn pages_are_recognized() {
        for (page, fix) in [
            (
                "https://a.example/admin/master/console/#/prod",
                "\"https://a.example/realms/prod\"",
            ),
            (
                "https://a.example/auth/admin/master/console/#/prod/clients",
                "\"https://a.example/auth/realms/prod\"",
            ),
            (
                "https://a.example/admin/master/console/",
                "\"https://a.example/realms/<realm>\"",
            ),
            (
                "https://a.example/realms/prod/account/#/",
                "\"https://a.example/realms/prod\"",
            ),
        ] {
            let error = check(page).unwrap_err().to_string();
            assert!(error.ends_with(fix), "{error}");
        }
        for issuer in [
            "https://a.example/realms/prod",
            "https://a.example/admin/x",
            "mailto:a",
            "x",
        ] {
            assert!(check(issuer).is_ok(), "{issuer}");
        }
        let secret = check("https://me:hunter2@a.example/admin/master/console/").unwrap_err();
        assert!(!secret.to_string().contains("hunter2"));
    }
}
