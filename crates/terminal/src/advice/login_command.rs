//! [`login_command`]: the command that registers a client again.

use portcullis_client::StartUrl;
use portcullis_metadata::Scopes;

/// The maximum length of the scopes in a command, in bytes. A server chooses them.
const MAX_SCOPES: usize = 4096;

/// Returns the command that registers again and signs in with these scopes, quoted for a POSIX
/// shell. More than 4,096 bytes of scopes are replaced by `…`.
pub fn login_command(start: &StartUrl, scopes: &Scopes) -> String {
    let scopes = scopes.to_string();
    let scopes = if scopes.len() > MAX_SCOPES {
        "…"
    } else {
        &scopes
    };
    format!(
        "portcullis login --fresh --scope {} {}",
        shell_word(scopes),
        shell_word(&start.to_string())
    )
}

/// Returns a text as one word of a POSIX shell. A server chooses the scopes, which can contain `$`
/// and `` ` ``.
pub fn shell_word(text: &str) -> String {
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
        let start = StartUrl::parse("https://mcp.example.com/mcp").unwrap();
        let command = |scopes: &str| login_command(&start, &Scopes::parse(scopes).unwrap());
        assert_eq!(
            command("a:b"),
            "portcullis login --fresh --scope a:b https://mcp.example.com/mcp"
        );
        assert!(command("a b").contains("--scope 'a b' "));
        let long = "a".repeat(MAX_SCOPES);
        assert!(command(&long).contains(&long));
        assert!(
            command(&format!("{long}b")).contains("--scope '…' https://"),
            "scopes of any length are not printed"
        );
        assert!(
            command("$(reboot) `x` it's").contains(r"--scope '$(reboot) `x` it'\''s' "),
            "{}",
            command("$(reboot) `x` it's")
        );
    }
}
