//! Routes that never apply.

use http::Method;
use portcullis_endpoint::SessionMode;
use portcullis_guard::authorize::RouteRule;
use portcullis_mcp::{Revisions, client_methods};

use crate::plan::ResourcePlan;

/// The methods of MCP endpoints, and those that need a session.
const SERVED: [Method; 4] = [Method::POST, Method::GET, Method::DELETE, Method::HEAD];
const OF_SESSIONS: [Method; 2] = [Method::GET, Method::DELETE];

/// Adds warnings about routes that no request to the endpoint matches.
pub(super) fn warn(resource: &ResourcePlan, key: &str, warnings: &mut Vec<String>) {
    for (position, route) in resource.routes.iter().enumerate() {
        let key = format!("{key}.route[{position}]");
        warnings.extend(other_path(route, &resource.endpoint, &key));
        warnings.extend(without_sessions(route, resource.session_mode, &key));
        warn_of_methods(route, &key, warnings);
    }
}

fn other_path(route: &RouteRule, endpoint: &str, key: &str) -> Option<String> {
    (!route.path.matches_path(endpoint)).then(|| {
        format!(
            "{key}.path = {:?} does not match the endpoint {endpoint:?}, so that the route never applies; write \
             {endpoint:?}, or remove the route",
            route.path.as_str()
        )
    })
}

fn without_sessions(route: &RouteRule, mode: SessionMode, key: &str) -> Option<String> {
    let mut methods = route.methods.iter();
    let is_of_sessions =
        !route.methods.is_empty() && methods.all(|method| OF_SESSIONS.contains(method));
    (mode == SessionMode::Off && is_of_sessions).then(|| {
        format!(
            "{key}.methods has only methods of sessions, which get 405 with sessions = \"off\", so that the route never applies; \
             remove the route, or write \"POST\""
        )
    })
}

fn warn_of_methods(route: &RouteRule, key: &str, warnings: &mut Vec<String>) {
    let is_served = |method: &Method| {
        SERVED
            .iter()
            .any(|served| method.as_str().eq_ignore_ascii_case(served.as_str()))
    };
    for method in route.methods.iter().filter(|method| !is_served(method)) {
        let name = method.as_str();
        let fix = if name == "*" {
            "remove methods, because a route without them is for all".to_owned()
        } else if client_methods(Revisions::ALL).any(|known| known == name) {
            format!("it is a method of MCP: write [[resource.rule]] with method = \"{name}\"")
        } else {
            "write \"POST\", \"GET\" or \"DELETE\"".to_owned()
        };
        warnings.push(format!(
            "{key}.methods has \"{name}\", which is not a method of MCP endpoints, so that it never applies; {fix}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use portcullis_guard::authorize::PathGlob;
    use portcullis_metadata::Scopes;

    use super::*;

    /// B9, J9: a route for methods of sessions only never applies without sessions.
    #[test]
    fn methods_of_sessions_need_sessions() {
        let warned = |methods: &[Method], mode| {
            let path = PathGlob::parse("/mcp").unwrap();
            let route = RouteRule::new(path, Scopes::empty()).methods(methods.iter().cloned());
            without_sessions(&route, mode, "route[0]").is_some()
        };
        for methods in [&[Method::GET][..], &[Method::DELETE], &OF_SESSIONS] {
            assert!(warned(methods, SessionMode::Off), "{methods:?}");
            assert!(!warned(methods, SessionMode::On), "{methods:?}");
        }
        for methods in [&[][..], &[Method::POST], &[Method::POST, Method::GET]] {
            assert!(!warned(methods, SessionMode::Off), "{methods:?}");
        }
    }
}
