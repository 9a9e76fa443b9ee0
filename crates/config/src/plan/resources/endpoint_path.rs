use anyhow::{Context as _, ensure};

use crate::plan::RESERVED_PATHS;

/// Checks that the path of the endpoint is written as clients send it, and that it is not reserved.
///
/// URL parsers and proxies remove dot segments, and decode `%` and two digits that stand for
/// unreserved characters. Requests are compared with the path byte for byte, so the endpoint must
/// be written without them. Fails with the reason and the fix.
pub(super) fn check_endpoint(endpoint: &str) -> anyhow::Result<()> {
    ensure!(
        endpoint.starts_with('/'),
        "endpoint = {endpoint:?} must start with a slash; write it as \"/mcp\""
    );
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
