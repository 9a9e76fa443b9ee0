use anyhow::{Context as _, bail, ensure};

use crate::{plan::RESERVED_PATHS, shown_url};

/// Checks that the path of the endpoint is written as clients send it, and that it is not reserved.
///
/// URL parsers and proxies remove dot segments, and decode `%` and two digits that stand for
/// unreserved characters. Requests are compared with the path byte for byte, so the endpoint must
/// be written without them. Fails with the reason and the fix.
pub(super) fn check_endpoint(endpoint: &str) -> anyhow::Result<()> {
    if !endpoint.starts_with('/') {
        let fix = match meant_path(endpoint) {
            Some(path) => format!("write it as {path:?}"),
            None => "write a path such as \"/mcp\"".to_owned(),
        };
        bail!(
            "endpoint = {:?} must start with a slash; {fix}",
            shown_url(endpoint)
        );
    }
    let is_path_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%".contains(&byte);
    ensure!(
        endpoint.bytes().all(is_path_byte),
        "endpoint = {endpoint:?} must be a plain path; remove query, fragment, spaces and other special characters"
    );
    check_escapes(endpoint)?;
    ensure!(
        !endpoint.contains("//")
            && !endpoint
                .split('/')
                .any(|segment| matches!(segment, "." | "..")),
        "endpoint = {endpoint:?} has an empty or a dot segment, which clients rewrite; remove it"
    );
    ensure!(
        !endpoint.starts_with("/.well-known/") && !RESERVED_PATHS.contains(&endpoint),
        "endpoint = {endpoint:?} is a path that this server reserves; choose another one"
    );
    Ok(())
}

/// Returns the path that is meant by a text without slash at its start: that of a URL, what follows
/// a host, or the text with a slash. `None` if it is no endpoint.
fn meant_path(endpoint: &str) -> Option<String> {
    let rest = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, rest)| rest);
    let is_url = rest.len() < endpoint.len();
    let path = match rest.split_once('/') {
        Some((host, path)) if is_url || host.contains(['.', ':']) => path,
        _ if is_url => return None,
        _ => rest,
    };
    let path = format!("/{path}");
    (path.len() > 1 && check_endpoint(&path).is_ok()).then_some(path)
}

/// Checks that each `%` begins a valid escape, which stands for a character that needs one (RFC
/// 3986 sections 2.1 and 2.3).
fn check_escapes(endpoint: &str) -> anyhow::Result<()> {
    for after in endpoint.split('%').skip(1) {
        let digits = after
            .get(..2)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let digits = digits.with_context(|| {
            format!("endpoint = {endpoint:?} has a % without two hexadecimal digits; write the character % as %25")
        })?;
        let character = char::from(u8::from_str_radix(digits, 16)?);
        ensure!(
            !character.is_ascii_alphanumeric() && !"-._~".contains(character),
            "endpoint = {endpoint:?} has %{digits}, which clients rewrite to {character:?}; write {character:?} itself"
        );
    }
    Ok(())
}
