//! The redirect URI of mcp-remote, for clients that are registered with it.

use anyhow::bail;

use super::{
    arguments::Arguments,
    session::{SessionId, client_metadata_url},
};

const HOST: &str = "localhost";
const PATH: &str = "/oauth/callback";
/// Paths that mcp-remote reserves.
const RESERVED: [&str; 2] = ["/wait-for-auth", "/.mcp-remote/id"];

/// The arguments of `portcullis connect` for the redirect URI.
pub(super) struct Redirect {
    pub(super) arguments: Vec<String>,
    /// Whether the given path cannot be used.
    pub(super) is_path_ignored: bool,
}

impl Redirect {
    /// Translates the redirect URI. A dynamically registered client accepts any, so for it only a
    /// given port matters. Fails when the code would be sent to another machine.
    pub(super) fn of(arguments: &Arguments, session: &SessionId) -> anyhow::Result<Self> {
        let host = host(arguments)?;
        let given = arguments.option("--callback-path");
        let usable = given.filter(|path| path.starts_with('/') && !RESERVED.contains(path));
        let mut redirect = Self {
            arguments: Vec::new(),
            is_path_ignored: given.is_some() && usable.is_none(),
        };

        let is_registered = arguments.option("--static-oauth-client-info").is_some()
            || client_metadata_url(arguments).is_some();
        let is_named = arguments.option("--host").is_some() || given.is_some();
        if is_registered && arguments.port().is_none() {
            redirect.add("--callback-port", &session.port().to_string());
        }
        if is_registered || is_named || arguments.port().is_some() {
            redirect.add("--callback-host", host);
            redirect.add("--callback-path", usable.unwrap_or(PATH));
        }
        Ok(redirect)
    }

    fn add(&mut self, option: &str, value: &str) {
        self.arguments.extend([option.to_owned(), value.to_owned()]);
    }
}

fn host(arguments: &Arguments) -> anyhow::Result<&str> {
    match arguments.option("--host").map(str::trim) {
        None => Ok(HOST),
        Some("::1" | "[::1]") => Ok("::1"),
        Some(host) if ["localhost", "127.0.0.1"].contains(&host) => Ok(host),
        Some(_) => bail!(
            "--host must be localhost, 127.0.0.1 or ::1: the browser would send the authorization code to another machine"
        ),
    }
}
