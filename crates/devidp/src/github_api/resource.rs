//! [`Resource`]: what a path of the API names.

/// The prefix of the API's paths on GitHub Enterprise Server. On github.com, the API has a host of
/// its own and no prefix; both forms are accepted.
const PREFIX: &str = "/api/v3";

/// What a path of the API names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource<'a> {
    /// The user.
    User,
    /// The e-mail addresses of the user.
    Emails,
    /// The organizations of the user.
    Orgs,
    /// The teams of the user.
    Teams,
    /// A token of the application with this client identifier.
    ApplicationToken(&'a str),
    /// The user's approval of the application with this client identifier.
    ApplicationGrant(&'a str),
}

impl<'a> Resource<'a> {
    /// Parses a path. Paths are compared without percent-decoding.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let path = path
            .strip_prefix(PREFIX)
            .filter(|rest| rest.starts_with('/'))
            .unwrap_or(path);
        match path {
            "/user" => return Some(Self::User),
            "/user/emails" => return Some(Self::Emails),
            "/user/orgs" => return Some(Self::Orgs),
            "/user/teams" => return Some(Self::Teams),
            _ => {}
        }
        let (client, kind) = path.strip_prefix("/applications/")?.split_once('/')?;
        match kind {
            _ if client.is_empty() => None,
            "token" => Some(Self::ApplicationToken(client)),
            "grant" => Some(Self::ApplicationGrant(client)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_path_are_accepted() {
        for (path, resource) in [
            ("/user", Some(Resource::User)),
            ("/api/v3/user", Some(Resource::User)),
            ("/api/v3/user/orgs", Some(Resource::Orgs)),
            ("/user/teams", Some(Resource::Teams)),
            ("/user/emails", Some(Resource::Emails)),
            (
                "/applications/app/token",
                Some(Resource::ApplicationToken("app")),
            ),
            (
                "/api/v3/applications/app/grant",
                Some(Resource::ApplicationGrant("app")),
            ),
            ("/applications//token", None),
            ("/applications/app/token/x", None),
            ("/api/v3user", None),
            ("/users", None),
            ("/user/", None),
        ] {
            assert_eq!(Resource::parse(path), resource, "{path}");
        }
    }
}
