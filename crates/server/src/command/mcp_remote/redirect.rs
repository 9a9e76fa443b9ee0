//! The redirect URI of mcp-remote, for clients that are registered with it.

use anyhow::bail;

use super::{arguments::Arguments, session::client_metadata_url, translation::Translation};

const HOST: &str = "localhost";
const PATH: &str = "/oauth/callback";

/// Adds the arguments for the redirect URI. A dynamically registered client accepts any, so for it only a given port
/// matters.
///
/// # Errors
/// Fails when the code would be sent to another machine.
pub(super) fn redirect(translation: &mut Translation, arguments: &Arguments) -> anyhow::Result<()> {
    let host = match arguments.option("--host").map(str::trim) {
        None => HOST,
        Some("::1" | "[::1]") => "::1",
        Some(host) if ["localhost", "127.0.0.1"].contains(&host) => host,
        Some(_) => bail!(
            "--host must be localhost, 127.0.0.1 or ::1: the browser would send the authorization code to another machine"
        ),
    };
    let path = match arguments.option("--callback-path") {
        Some(path) if !path.starts_with('/') || ["/wait-for-auth", "/.mcp-remote/id"].contains(&path) => {
            translation.ignore("--callback-path", "it does not begin with / or is reserved");
            PATH
        }
        given => given.unwrap_or(PATH),
    };
    let is_fixed = arguments.port().is_some()
        || arguments.option("--static-oauth-client-info").is_some()
        || client_metadata_url(arguments).is_some();
    let is_named = arguments.option("--host").is_some() || arguments.option("--callback-path").is_some();
    if is_fixed && arguments.port().is_none() {
        translation.push(["--callback-port", &translation.session.port().to_string()]);
    }
    if !is_fixed && !is_named {
        return Ok(());
    }
    translation.push(["--callback-host", host, "--callback-path", path]);
    Ok(())
}
