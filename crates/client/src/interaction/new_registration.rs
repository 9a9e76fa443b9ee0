//! [`NewRegistration`]: the question before a client is registered again for more scopes.

use std::fmt;

use portcullis_metadata::{Issuer, Scopes};

use crate::{Shortened, StartUrl};

/// A new registration that a step-up needs: the present one lacks scopes, and the authorization server does not update it
/// (RFC 7592). The new client is another owner of sessions, so the session with the server starts again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewRegistration {
    /// The URL to sign in for.
    pub start: StartUrl,
    /// The authorization server.
    pub issuer: Issuer,
    /// The scopes that the registration lacks.
    pub missing: Scopes,
    /// All scopes to request.
    pub scopes: Scopes,
}

/// The maximum length of the scopes in a command, in bytes. A server chooses them.
const MAX_COMMAND_SCOPES: usize = 4096;

impl NewRegistration {
    /// Returns the command that registers again and signs in, quoted for a POSIX shell. More than 4,096 bytes of scopes are
    /// replaced by `…`.
    pub fn command(&self) -> String {
        let scopes = self.scopes.to_string();
        let scopes = if scopes.len() > MAX_COMMAND_SCOPES { "…" } else { &scopes };
        let start = self.start.to_string();
        format!("portcullis login --fresh --scope {} {}", quoted(scopes), quoted(&start))
    }
}

impl fmt::Display for NewRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the client's registration at {} lacks the scopes {}, and the authorization server does not update it",
            self.issuer,
            Shortened(&self.missing)
        )
    }
}

/// Returns a text as one word of a POSIX shell. A server chooses the scopes, which can contain `$` and `` ` ``.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I6: the printed command requests exactly these scopes, and no scope is run by the shell.
    #[test]
    fn scopes_are_quoted() {
        let command = |scopes: &str| {
            let scopes = Scopes::parse(scopes).unwrap();
            NewRegistration {
                start: StartUrl::parse("https://mcp.example.com/mcp").unwrap(),
                issuer: Issuer::parse("https://auth.example.com").unwrap(),
                missing: scopes.clone(),
                scopes,
            }
            .command()
        };
        assert_eq!(command("a:b"), "portcullis login --fresh --scope a:b https://mcp.example.com/mcp");
        assert!(command("a b").contains("--scope 'a b' "));
        let long = "a".repeat(MAX_COMMAND_SCOPES);
        assert!(command(&long).contains(&long));
        assert!(command(&format!("{long}b")).contains("--scope '…' https://"), "scopes of any length are not printed");
        assert!(
            command("$(reboot) `x` it's").contains(r"--scope '$(reboot) `x` it'\''s' "),
            "{}",
            command("$(reboot) `x` it's")
        );
    }
}
