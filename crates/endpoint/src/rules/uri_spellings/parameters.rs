//! [`without_parameters`]: URIs without the parameters of their path segments.

/// Removes `;` and what follows it from each segment of the path, as some servers do before they
/// select a resource (RFC 3986 section 3.3). `None` if there is nothing to remove.
pub(super) fn without_parameters(uri: &str) -> Option<String> {
    let path_end = uri.find(['?', '#']).unwrap_or(uri.len());
    let authority = uri[..path_end].find("://").map(|colon| colon + "://".len());
    let path_start = authority.map_or(0, |start| {
        uri[start..path_end]
            .find('/')
            .map_or(path_end, |slash| start + slash)
    });
    let path = &uri[path_start..path_end];
    if !path.contains(';') {
        return None;
    }
    let mut plain = String::with_capacity(uri.len());
    plain.push_str(&uri[..path_start]);
    for segment in path.split_inclusive('/') {
        match segment.split_once(';') {
            Some((name, parameters)) => {
                plain.push_str(name);
                plain.extend(parameters.ends_with('/').then_some('/'));
            }
            None => plain.push_str(segment),
        }
    }
    plain.push_str(&uri[path_end..]);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_removed_from_every_segment() {
        for (uri, expected) in [
            ("note://vault/x", None),
            ("note://u;p@vault/x", None),
            ("note://vault/x?a;b#c;d", None),
            ("note://vault/x;v=1", Some("note://vault/x")),
            (
                "note://vault/a;v=1;w/b;/c?d;e",
                Some("note://vault/a/b/c?d;e"),
            ),
            ("note://u;p@vault/;a/b", Some("note://u;p@vault//b")),
            ("note:a;b/c;d", Some("note:a/c")),
            ("a;b", Some("a")),
            ("a/b;://c;d/e;f", Some("a/b;://c;d/e")),
        ] {
            assert_eq!(without_parameters(uri).as_deref(), expected, "{uri}");
        }
    }
}
