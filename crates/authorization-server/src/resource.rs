//! The resource of a request (RFC 8707), which becomes the audience of its tokens.

use portcullis_metadata::ResourceUri;

use crate::{
    error::{ErrorCode, ErrorResponse},
    params::Params,
};

/// Returns the parameter `resource`, if present. RFC 8707 allows several; one token for several
/// resources is not supported.
///
/// # Errors
/// Fails with `invalid_target` when there are several.
pub fn single_resource(params: &Params) -> Result<Option<&str>, ErrorResponse> {
    params
        .get("resource")
        .map_err(|_| invalid("only one resource is supported"))
}

/// Returns the requested resource, or the default one (RFC 8707 section 2). Does not check whether
/// the server knows the resource.
///
/// # Errors
/// Fails with `invalid_target` when it is malformed, repeated, or missing without a default.
pub fn parse_resource(params: &Params, default: Option<&str>) -> Result<Box<str>, ErrorResponse> {
    match (single_resource(params)?, default) {
        (Some(resource), _) => match ResourceUri::parse(resource) {
            Ok(resource) => Ok(resource.as_str().into()),
            Err(_) => Err(invalid(
                "resource must be an absolute http or https URL without fragment and user information",
            )),
        },
        (None, Some(default)) => Ok(default.into()),
        (None, None) => Err(invalid(
            "resource is missing: it is the audience of the token",
        )),
    }
}

/// Checks the resource of a token request against that of the grant. It may be absent, and must
/// otherwise be the same string (RFC 8707 section 2.2).
///
/// # Errors
/// Fails with `invalid_target` when it is another one.
pub fn check_resource(params: &Params, granted: Option<&str>) -> Result<(), ErrorResponse> {
    match params.get("resource") {
        Ok(None) => Ok(()),
        Ok(resource) if resource == granted => Ok(()),
        _ => Err(invalid("resource is not that of the authorization request")),
    }
}

/// Returns the requested one of the server's resources. If none is requested, it is the only one,
/// or the one at the position `default`.
///
/// A request names a resource by its identifier. ASCII letter case and one trailing slash are
/// ignored, as in [`ResourceUri::matches_audience`], unless two resources differ only in that. If
/// the server has only one resource, its origin and its identifier with a query mean it, too,
/// because some clients derive the parameter from the URL of a connection.
///
/// # Errors
/// Fails with `invalid_target` when the resource is malformed, unknown, repeated, or missing
/// without a default.
pub fn select_resource<'r>(
    params: &Params,
    resources: &'r [ResourceUri],
    default: Option<usize>,
) -> Result<&'r ResourceUri, ErrorResponse> {
    if let Some(requested) = single_resource(params)? {
        return find_resource(resources, requested)
            .ok_or(invalid("resource is not a resource of this server"));
    }
    let implied = match resources {
        [only] => Some(only),
        _ => default.and_then(|position| resources.get(position)),
    };
    implied.ok_or(invalid(
        "resource is missing: this server has several resources",
    ))
}

/// Checks the resource of a token request against that of the grant. It may be absent, and must
/// otherwise mean the granted one by the rules of [`select_resource`].
///
/// # Errors
/// Fails with `invalid_target` when it is another one, or repeated.
pub fn check_selected_resource(
    params: &Params,
    resources: &[ResourceUri],
    granted: Option<&str>,
) -> Result<(), ErrorResponse> {
    let Some(requested) = single_resource(params)? else {
        return Ok(());
    };
    match find_resource(resources, requested) {
        Some(resource) if Some(resource.as_str()) == granted => Ok(()),
        _ => Err(invalid("resource is not that of the authorization request")),
    }
}

fn find_resource<'r>(resources: &'r [ResourceUri], requested: &str) -> Option<&'r ResourceUri> {
    let exact = resources
        .iter()
        .find(|resource| resource.as_str() == requested);
    exact.or_else(|| {
        let mut similar = resources
            .iter()
            .filter(|resource| resource.matches_audience(requested));
        match (similar.next(), similar.next(), resources) {
            (Some(resource), None, _) => Some(resource),
            (None, _, [only]) => means_only_resource(only, requested).then_some(only),
            _ => None,
        }
    })
}

/// Returns whether this is the origin of the resource, or its identifier with a query.
fn means_only_resource(only: &ResourceUri, requested: &str) -> bool {
    let Ok(requested) = ResourceUri::parse(requested) else {
        return false;
    };
    let url = requested.url();
    let is_origin =
        url.origin() == only.url().origin() && url.path() == "/" && url.query().is_none();
    let without_query = requested.as_str().split('?').next().unwrap_or_default();
    is_origin || only.matches_audience(without_query)
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidTarget, description)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::form_urlencoded;

    use super::*;

    const MCP: &str = "https://mcp.example.com/mcp";
    const FILES: &str = "https://mcp.example.com/files";

    fn resources(uris: &[&str]) -> Vec<ResourceUri> {
        let parse = |uri: &&str| ResourceUri::parse(uri).unwrap();
        uris.iter().map(parse).collect()
    }

    fn params(requested: &[&str]) -> Params {
        let pairs = requested.iter().map(|uri| ("resource", uri));
        let mut encoded = form_urlencoded::Serializer::new(String::new());
        Params::parse(encoded.extend_pairs(pairs).finish().as_bytes())
    }

    fn select(uris: &[&str], default: Option<usize>, requested: &[&str]) -> Option<String> {
        let resources = resources(uris);
        match select_resource(&params(requested), &resources, default) {
            Ok(resource) => Some(resource.as_str().to_owned()),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::InvalidTarget);
                None
            }
        }
    }

    #[test]
    fn the_only_resource_has_several_names() {
        for requested in [
            &[][..],
            &[MCP],
            &["https://mcp.example.com/mcp/"],
            &["https://MCP.example.com/mcp"],
            &["https://mcp.example.com"],
            &["https://mcp.example.com/"],
            &["https://mcp.example.com:443/"],
            &["https://mcp.example.com/mcp?key=value"],
            &["https://mcp.example.com/mcp?"],
        ] {
            let selected = select(&[MCP], None, requested);
            assert_eq!(selected.as_deref(), Some(MCP), "{requested:?}");
        }
        for requested in [
            &["https://attacker.example/mcp"][..],
            &["https://mcp.example.com.attacker.example/"],
            &["https://mcp.example.com@attacker.example/mcp"],
            &["https://user@mcp.example.com/"],
            &["https://mcp.example.com:8443/"],
            &["http://mcp.example.com/"],
            &["https://mcp.example.com/?key=value"],
            &["https://mcp.example.com/mcp#fragment"],
            &["https://mcp.example.com/mcp/tools"],
            &["https://mcp.example.com/files?https://mcp.example.com/mcp"],
            &["https://mcp.example.com/x/../mcp"],
            &["mcp.example.com/mcp"],
            &["mcp"],
            &[MCP, MCP],
        ] {
            assert_eq!(select(&[MCP], None, requested), None, "{requested:?}");
        }
    }

    #[test]
    fn one_of_several_resources_must_be_named_unless_there_is_a_default() {
        let both = [MCP, FILES];
        assert_eq!(select(&both, None, &[FILES]).as_deref(), Some(FILES));
        let with_slash = "https://mcp.example.com/files/";
        assert_eq!(select(&both, None, &[with_slash]).as_deref(), Some(FILES));
        assert_eq!(select(&both, Some(1), &[]).as_deref(), Some(FILES));
        assert_eq!(select(&both, Some(1), &[MCP]).as_deref(), Some(MCP));
        for (default, requested) in [
            (None, &[][..]),
            (Some(2), &[]),
            // The default does not stand for what the client did not mean.
            (Some(0), &["https://mcp.example.com"]),
            (Some(0), &["https://mcp.example.com/mcp?key=value"]),
            (Some(0), &["https://attacker.example/"]),
            (Some(0), &[MCP, FILES]),
        ] {
            assert_eq!(select(&both, default, requested), None, "{requested:?}");
        }
        assert_eq!(select(&[], None, &[]), None);
    }

    #[test]
    fn similar_resources_are_told_apart() {
        let similar = [
            MCP,
            "https://mcp.example.com/mcp/",
            "https://mcp.example.com/MCP",
        ];
        for uri in similar {
            assert_eq!(select(&similar, None, &[uri]).as_deref(), Some(uri));
        }
        assert_eq!(
            select(&similar, None, &["https://MCP.example.com/mcp"]),
            None
        );
    }

    #[test]
    fn a_token_request_names_the_granted_resource_or_none() {
        let check = |uris: &[&str], requested: &[&str], granted| {
            let checked = check_selected_resource(&params(requested), &resources(uris), granted);
            checked.map_err(|error| assert_eq!(error.code, ErrorCode::InvalidTarget))
        };
        for requested in [&[][..], &[MCP], &["https://mcp.example.com"]] {
            assert!(check(&[MCP], requested, Some(MCP)).is_ok(), "{requested:?}");
        }
        assert!(check(&[MCP, FILES], &[], Some(MCP)).is_ok());
        assert!(check(&[MCP, FILES], &[MCP], Some(MCP)).is_ok());
        for requested in [&[FILES][..], &["https://mcp.example.com"], &[MCP, MCP]] {
            let checked = check(&[MCP, FILES], requested, Some(MCP));
            assert!(checked.is_err(), "{requested:?}");
        }
        assert!(check(&[MCP], &[MCP], None).is_err());
        // The granted resource is no longer one of the server.
        assert!(check(&[FILES], &[MCP], Some(MCP)).is_err());
    }

    proptest! {
        /// A selected resource has the host of the requested one.
        #[test]
        fn no_foreign_resource_is_selected(requested in "https?://[a-z.:@]{0,4}(mcp\\.example\\.com)?[a-z.:@/?#\\\\]{0,10}") {
            let resources = resources(&[MCP]);
            if select_resource(&params(&[&requested]), &resources, None).is_ok() {
                let url = url::Url::parse(&requested).unwrap();
                prop_assert_eq!(url.origin(), resources[0].url().origin());
            }
        }
    }
}
