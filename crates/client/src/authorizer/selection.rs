//! Selects the authorization server and the scopes.

use std::collections::HashSet;

use portcullis_metadata::{Issuer, Scopes};

use crate::{ClientError, offline_access::OFFLINE_ACCESS};

/// Selects one of the resource's authorization servers: `wanted`, else one that the caller has
/// credentials for, else the first.
///
/// `bound` are the servers of the caller's credentials. If there are any, no other server is used.
/// `first_known` returns the first server at which a client is registered; it is called at most
/// once. Fails with [`ClientError::AuthorizationServerNotListed`] when the resource does not list
/// the wanted server, or no server of the credentials; [`ClientError::NoAuthorizationServer`] when
/// it lists none.
pub(crate) fn select_server<'a>(
    listed: &'a [Issuer],
    wanted: Option<&Issuer>,
    bound: &[&Issuer],
    first_known: impl FnOnce(&'a [Issuer]) -> Option<&'a Issuer>,
) -> Result<&'a Issuer, ClientError> {
    let not_listed = |issuer: &Issuer| ClientError::AuthorizationServerNotListed {
        issuer: issuer.clone(),
    };
    if let Some(issuer) = wanted {
        return listed
            .iter()
            .find(|listed| *listed == issuer)
            .ok_or_else(|| not_listed(issuer));
    }
    if let Some(first) = bound.first() {
        return listed
            .iter()
            .find(|&issuer| bound.contains(&issuer))
            .ok_or_else(|| not_listed(first));
    }
    first_known(listed)
        .or_else(|| listed.first())
        .ok_or(ClientError::NoAuthorizationServer)
}

/// Selects the scopes to request: the challenge's, else all that the resource supports, else none.
/// `offline_access` is added if the authorization server supports it and the list is not empty;
/// alone, it would replace the server's default scopes.
pub(crate) fn scopes_to_request(
    challenged: Option<&Scopes>,
    resource: &[String],
    server: &[String],
) -> Scopes {
    let named = match challenged {
        Some(scopes) if !scopes.is_empty() => scopes.clone(),
        // Names that are not valid scopes are omitted.
        _ => valid_scopes(resource.iter().map(String::as_str)),
    };
    with_offline_access(named, server)
}

/// Adds `offline_access` to named scopes when the authorization server supports it, so that there
/// is a refresh token.
pub(crate) fn with_offline_access(named: Scopes, server: &[String]) -> Scopes {
    let offline = Scopes::from_names([OFFLINE_ACCESS]).unwrap_or_default();
    if !named.is_empty() && server.iter().any(|name| name == OFFLINE_ACCESS) {
        named.union(&offline)
    } else {
        named
    }
}

/// Selects the scopes of a registration, to which a server may limit the client: those requested
/// now, and those of the resource that the server knows, for later step-ups. Servers reject
/// registrations with unknown scopes. If none are requested now, there are none, so that the
/// server's default is not limited.
pub(crate) fn scopes_to_register(asked: &Scopes, resource: &[String], server: &[String]) -> Scopes {
    if asked.is_empty() {
        return Scopes::empty();
    }
    let known: HashSet<&str> = server.iter().map(String::as_str).collect();
    asked.union(&valid_scopes(
        resource
            .iter()
            .map(String::as_str)
            .filter(|name| known.contains(name)),
    ))
}

/// The set of the names that are valid scopes.
fn valid_scopes<'a>(names: impl Iterator<Item = &'a str>) -> Scopes {
    Scopes::from_names(names.filter(|name| Scopes::is_name(name))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    fn issuers(hosts: &[&str]) -> Vec<Issuer> {
        hosts
            .iter()
            .map(|host| Issuer::parse(&format!("https://{host}.example")).unwrap())
            .collect()
    }

    fn chosen(wanted: Option<&str>, bound: &[&str], held: &[&str]) -> Result<String, &'static str> {
        let wanted = wanted.map(|host| issuers(&[host]).remove(0));
        let held = issuers(held);
        let (listed, bound) = (issuers(&["a", "b", "c"]), issuers(bound));
        let bound: Vec<&Issuer> = bound.iter().collect();
        select_server(&listed, wanted.as_ref(), &bound, |all| {
            all.iter().find(|issuer| held.contains(issuer))
        })
        .map(Issuer::to_string)
        .map_err(|error| error.code())
    }

    /// G5: the caller's choice, then credentials, then the first; never a fallback from the
    /// caller's credentials.
    #[test]
    fn one_server_of_several_is_chosen() {
        assert_eq!(chosen(None, &[], &[]), Ok("https://a.example".into()));
        assert_eq!(
            chosen(None, &[], &["c", "x"]),
            Ok("https://c.example".into())
        );
        assert_eq!(
            chosen(None, &["x", "b"], &["c"]),
            Ok("https://b.example".into())
        );
        assert_eq!(
            chosen(Some("b"), &[], &["c"]),
            Ok("https://b.example".into())
        );
        assert_eq!(chosen(Some("x"), &[], &[]), Err("client.server_not_listed"));
        assert_eq!(
            chosen(None, &["x"], &["a"]),
            Err("client.server_not_listed")
        );
    }

    /// I1: scopes come from the challenge, then from the resource's metadata, otherwise there are
    /// none.
    #[test]
    fn scopes_come_from_the_challenge_first() {
        let asked = |challenged: Option<&str>, resource: &[&str], server: &[&str]| {
            let challenged = challenged.map(|text| Scopes::parse(text).unwrap());
            scopes_to_request(challenged.as_ref(), &names(resource), &names(server)).to_string()
        };
        assert_eq!(asked(Some("b a"), &["c"], &["c"]), "a b");
        assert_eq!(asked(None, &["c", "not one", "d"], &[]), "c d");
        assert_eq!(asked(Some(""), &["c"], &[]), "c");
        assert_eq!(asked(None, &[], &["openid"]), "");
        assert_eq!(
            asked(Some("a"), &[], &["offline_access"]),
            "a offline_access"
        );
        assert_eq!(asked(None, &[], &["offline_access"]), "");
    }

    /// I1: scopes that a person chose keep `offline_access`, without which there may be no refresh
    /// token.
    #[test]
    fn chosen_scopes_keep_offline_access() {
        let with = |scopes: &str, server: &str| {
            with_offline_access(Scopes::parse(scopes).unwrap(), &[server.to_owned()]).to_string()
        };
        assert_eq!(with("a", "offline_access"), "a offline_access");
        assert_eq!(with("a", "openid"), "a");
        assert_eq!(with("", "offline_access"), "");
    }

    /// H2: a registration includes the scopes of later step-ups, but none that the server does not
    /// know.
    #[test]
    fn a_registration_includes_later_scopes() {
        let named = |asked: &str, resource: &[&str], server: &[&str]| {
            scopes_to_register(
                &Scopes::parse(asked).unwrap(),
                &names(resource),
                &names(server),
            )
            .to_string()
        };
        assert_eq!(named("a", &["a", "b", "c"], &["openid", "b"]), "a b");
        assert_eq!(named("a", &["b"], &[]), "a");
        assert_eq!(named("", &["b"], &["b"]), "");
    }
}
