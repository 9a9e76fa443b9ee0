//! [`OtherApi`]: APIs for which a token that is not bound to a resource must not be valid.

mod known_apis;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::{AccessToken, UnverifiedClaims, syntax::is_uuid};
use url::Url;

use self::known_apis::{
    APPLICATIONS, DOMAINS, GOOGLE_OPENID_SCOPES, GRAPH, GRAPH_APPLICATIONS, MICROSOFT,
    OPENID_SCOPES, UNKNOWN,
};
use crate::StartUrl;

/// Recognizes the scopes and audiences of APIs other than the resource's. It cannot recognize every
/// API: it adds to the user's consent and does not replace it.
#[derive(Clone, Copy)]
pub(crate) struct OtherApi<'a> {
    /// The URL of the resource, whose own API is no other one.
    pub(crate) start: &'a StartUrl,
    /// Whether a scope without the name of an API belongs to Microsoft Graph.
    pub(crate) defaults_to_graph: bool,
}

impl OtherApi<'_> {
    /// Returns the other API that a scope names.
    pub(crate) fn of_scope(self, scope: &str) -> Option<&'static str> {
        if OPENID_SCOPES.contains(&scope) || GOOGLE_OPENID_SCOPES.contains(&scope) {
            return None;
        }
        let application = scope.split('/').next().unwrap_or_default();
        if is_uuid(application) {
            return of_application(application);
        }
        match Url::parse(scope) {
            Ok(url) if matches!(url.scheme(), "https" | "http") => self.of_url(&url),
            Ok(url) if url.scheme() == "api" => url.host_str().and_then(of_application),
            // `spn:` and other forms that Entra ID may accept as the name of any application.
            Ok(_) if self.defaults_to_graph => Some(UNKNOWN),
            Err(_) if self.defaults_to_graph => Some(GRAPH),
            _ => None,
        }
    }

    /// Returns the other API that an entry of `aud` names.
    pub(crate) fn of_audience(self, audience: &str) -> Option<&'static str> {
        if is_uuid(audience) {
            return of_application(audience);
        }
        match Url::parse(audience) {
            Ok(url) if matches!(url.scheme(), "https" | "http") => self.of_url(&url),
            Ok(url) => url.host_str().and_then(of_application),
            Err(_) => None,
        }
    }

    /// Returns the other API that the `aud` of an access token names. A token that is not a JWT
    /// names none.
    pub(crate) fn of_token(self, token: &AccessToken) -> Option<&'static str> {
        let payload = URL_SAFE_NO_PAD
            .decode(token.secret().split('.').nth(1)?)
            .ok()?;
        let claims = UnverifiedClaims::parse(&payload).ok()?;
        claims
            .audience()?
            .find_map(|audience| self.of_audience(audience))
    }

    /// Returns the other API at the host of a URL.
    fn of_url(self, url: &Url) -> Option<&'static str> {
        let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
        let own = self.start.url().host_str().unwrap_or_default();
        let (domain, name) = DOMAINS
            .iter()
            .find(|(domain, _)| is_at_or_below(&host, domain))?;
        // The API's own host, and Google's servers, whose scopes share one host.
        let is_own = host == own || (*domain == "googleapis.com" && is_at_or_below(own, domain));
        (!is_own).then_some(*name)
    }
}

/// Returns the API with an application identifier.
fn of_application(application: &str) -> Option<&'static str> {
    let application = application.to_ascii_lowercase();
    if GRAPH_APPLICATIONS.contains(&application.as_str()) {
        return Some(GRAPH);
    }
    let is_reserved =
        application.starts_with("0000") && application.ends_with("-0000-0000-c000-000000000000");
    (is_reserved || APPLICATIONS.contains(&application.as_str())).then_some(MICROSOFT)
}

fn is_at_or_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::{known_apis::GOOGLE, *};

    fn of_scope(start: &str, defaults_to_graph: bool, scope: &str) -> Option<&'static str> {
        OtherApi {
            start: &StartUrl::parse(start).unwrap(),
            defaults_to_graph,
        }
        .of_scope(scope)
    }

    /// I1: at Entra ID, a scope belongs to another API by URL, by application, or by default.
    #[test]
    fn scopes_of_other_apis_are_recognized() {
        let scope = |scope: &str| of_scope("https://mcp.example.com/mcp", true, scope);
        for own in [
            "openid",
            "offline_access",
            "api://11112222-bbbb-3333-cccc-4444dddd5555/tools",
            "api://contoso/tools",
            "11112222-bbbb-3333-cccc-4444dddd5555/.default",
            "https://contoso.com/mcp/tools",
            "https://graph.microsoft.com.contoso.com/tools",
            "https://notmicrosoft.com/tools",
        ] {
            assert_eq!(scope(own), None, "{own}");
        }
        for graph in [
            "User.Read",
            ".default",
            "Mail.ReadWrite",
            "https://graph.microsoft.com/User.Read",
            "https://graph.microsoft.com//User.Read",
            "HTTPS://Graph.Microsoft.COM/.default",
            "https://graph.microsoft.com.:443/User.Read",
            "https://x@graph.microsoft.com/User.Read",
            "https:graph.microsoft.com/User.Read",
            "http://graph.microsoft.com/User.Read",
            "00000003-0000-0000-c000-000000000000/User.Read",
            "00000003-0000-0000-C000-000000000000/.default",
            "api://00000003-0000-0000-c000-000000000000/.default",
            "https://graph.windows.net/User.Read",
        ] {
            assert_eq!(scope(graph), Some(GRAPH), "{graph}");
        }
        for microsoft in [
            "https://management.azure.com/user_impersonation",
            "https://outlook.office.com/Mail.Read",
            "https://contoso.sharepoint.com/AllSites.Read",
            "797f4846-ba00-4fd7-ba43-dac1f8f63013/.default",
            "00000009-0000-0000-c000-000000000000/.default",
        ] {
            assert_eq!(scope(microsoft), Some(MICROSOFT), "{microsoft}");
        }
        assert_eq!(
            scope("spn:00000003-0000-0000-c000-000000000000/.default"),
            Some(UNKNOWN)
        );
    }

    /// I1: at other providers, only known APIs are recognized; an API's own server can request its
    /// scopes.
    #[test]
    fn google_scopes_are_recognized() {
        let drive = "https://www.googleapis.com/auth/drive";
        assert_eq!(
            of_scope("https://mcp.example.com/mcp", false, drive),
            Some(GOOGLE)
        );
        assert_eq!(
            of_scope(
                "https://mcp.example.com/mcp",
                false,
                "https://mail.google.com/"
            ),
            Some(GOOGLE)
        );
        assert_eq!(
            of_scope("https://bigquery.googleapis.com/mcp", false, drive),
            None
        );
        assert_eq!(
            of_scope("https://googleapis.com.evil.example/mcp", false, drive),
            Some(GOOGLE)
        );
        for own in [
            "mcp:tools",
            "openid",
            "https://www.googleapis.com/auth/userinfo.email",
        ] {
            assert_eq!(
                of_scope("https://mcp.example.com/mcp", false, own),
                None,
                "{own}"
            );
        }
        assert_eq!(
            of_scope(
                "https://mcp.dev.azure.com/x",
                true,
                "https://mcp.dev.azure.com/.default"
            ),
            None
        );
    }

    /// I1: a token for another API is recognized by its audience.
    #[test]
    fn audiences_of_other_apis_are_recognized() {
        let start = StartUrl::parse("https://mcp.example.com/mcp").unwrap();
        let api = OtherApi {
            start: &start,
            defaults_to_graph: true,
        };
        let token = |aud: &str| {
            let payload = URL_SAFE_NO_PAD.encode(format!(r#"{{"aud":{aud}}}"#));
            api.of_token(&AccessToken::new(format!("e30.{payload}.c2ln")))
        };
        for graph in [
            r#""https://graph.microsoft.com""#,
            r#""00000003-0000-0000-c000-000000000000""#,
            r#"["x","https://graph.microsoft.com/"]"#,
        ] {
            assert_eq!(token(graph), Some(GRAPH), "{graph}");
        }
        for own in [
            r#""11112222-bbbb-3333-cccc-4444dddd5555""#,
            r#""https://mcp.example.com/mcp""#,
            r#""x""#,
        ] {
            assert_eq!(token(own), None, "{own}");
        }
        assert_eq!(api.of_token(&AccessToken::new("opaque")), None);
    }
}
