//! Settings that concern several resources.

use portcullis_metadata::Issuer;
use url::Url;

use crate::{Config, Diagnostics, file::Authorization, plan::folded::folded};

/// The first segment of the broker's paths.
const BROKER_SEGMENT: &str = "oauth";

/// Adds errors for endpoints that conflict, for open endpoints on a network, and for several
/// resources at the root metadata path. `broker` is the issuer of the broker, if there is one.
pub(super) fn check(config: &Config, broker: Option<&Issuer>, errors: &mut Diagnostics<'_>) {
    for (position, resource) in config.resource.iter().enumerate() {
        let mut errors = errors.table(&format!("resource[{position}]"));
        let mut earlier = config.resource[..position].iter().enumerate();
        let twin =
            earlier.find(|(_, earlier)| folded(&earlier.endpoint) == folded(&resource.endpoint));
        if let Some((position, twin)) = twin {
            let endpoint = &resource.endpoint;
            let problem = if twin.endpoint == *endpoint {
                format!("is also the endpoint of resource[{position}]")
            } else {
                format!(
                    "differs from {:?} of resource[{position}] only by letter case or a trailing slash",
                    twin.endpoint
                )
            };
            errors.add(
                "endpoint",
                format!("endpoint = {endpoint:?} {problem}; rename one"),
            );
        }
        if resource.auth == Authorization::None
            && !config.listen.ip().is_loopback()
            && !config.dangerous_allow_unauthenticated_network
        {
            errors.add(
                "auth",
                format!(
                    "auth = \"none\" lets anyone use {:?}, and listen = \"{}\" is open to the network; remove auth to require tokens, \
                     or listen on 127.0.0.1; if everyone in that network may use it, set dangerous_allow_unauthenticated_network = true",
                    resource.endpoint, config.listen
                ),
            );
        }
    }
    if let Some(broker) = broker {
        check_beside_broker(config, broker, errors);
    }
    check_defaults(config, errors);
}

/// Adds errors for all but one of the resources whose metadata would be at the root path: the one
/// at `/`, whose own path that is, and defaults.
fn check_defaults(config: &Config, errors: &mut Diagnostics<'_>) {
    let mut defaults = config
        .resource
        .iter()
        .enumerate()
        .filter(|(_, resource)| resource.default);
    let mut is_root = config.resource.iter().map(|one| one.endpoint == "/");
    if let Some(root) = is_root.position(|is_root| is_root) {
        for (position, _) in defaults.filter(|(position, _)| *position != root) {
            let text = format!(
                "default = true serves the metadata at the root metadata path, which is that of resource[{root}], because its \
                 endpoint is \"/\"; remove it"
            );
            errors.add(&format!("resource[{position}].default"), text);
        }
    } else if let Some((first, _)) = defaults.next() {
        for (position, _) in defaults {
            let text = format!(
                "default = true is also set for resource[{first}]; remove one, because one resource is served at the root \
                 metadata path"
            );
            errors.add(&format!("resource[{position}].default"), text);
        }
    }
}

/// Adds errors for an issuer with the identifier of the broker, for open endpoints, which would
/// share the origin of the pages where users sign in, and for endpoints in the paths of the broker.
fn check_beside_broker(config: &Config, broker: &Issuer, errors: &mut Diagnostics<'_>) {
    // A default port can be written or left out.
    let bare = |url: &str| {
        let url = Url::parse(url).map_or_else(|_| url.to_owned(), String::from);
        folded(&url)
    };
    for (position, issuer) in config.issuer.iter().enumerate() {
        if bare(&issuer.issuer) == bare(broker.as_str()) {
            errors.add(
                &format!("issuer[{position}].issuer"),
                "it is base_url, which is the issuer of the [broker]; remove this [[issuer]], because the broker's tokens are \
                 accepted without it",
            );
        }
    }
    for (position, resource) in config.resource.iter().enumerate() {
        let mut errors = errors.table(&format!("resource[{position}]"));
        let endpoint = &resource.endpoint;
        if resource.auth == Authorization::None {
            errors.add(
                "auth",
                format!(
                    "auth = \"none\" beside a [broker] lets the upstream of {endpoint:?} act on the pages where users sign in, \
                     because anyone can open its responses in a browser; require tokens, or serve the endpoint under another \
                     base_url"
                ),
            );
        }
        let first_segment = endpoint.trim_start_matches('/').split('/').next();
        if first_segment.is_some_and(|first| first.eq_ignore_ascii_case(BROKER_SEGMENT)) {
            errors.add(
                "endpoint",
                format!("endpoint = {endpoint:?} is in the paths of the [broker], /oauth/; choose another one"),
            );
        }
    }
}
