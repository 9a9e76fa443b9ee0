//! The arguments of a server's command as they are displayed: what can be a secret is hidden.

use url::Url;

use super::launcher::is_start;
use crate::mcp_remote::arguments::header;

/// What is displayed in place of a possible secret.
pub(super) const HIDDEN: &str = "…";

/// The options of mcp-remote, npx and `portcullis connect` whose values are displayed. Those of
/// other options are hidden.
const PUBLIC: [&str; 22] = [
    "--auth-timeout",
    "--body-timeout",
    "--ca-file",
    "--callback-host",
    "--callback-path",
    "--callback-port",
    "--client-id",
    "--client-secret-file",
    "--connect-timeout",
    "--header-file",
    "--headers-timeout",
    "--host",
    "--ignore-tool",
    "--package",
    "--ping-interval",
    "--protocol",
    "--scope",
    "--store",
    "--timeout",
    "--token-auth-method",
    "--transport",
    "-p",
];

/// Returns the displayed text of each argument.
///
/// Displayed are known commands and options, values of public options, names of headers and
/// parameters, the callback port, and URLs without user information, query and fragment. Everything
/// else is hidden. The path of a URL is displayed, although it can contain a secret.
pub(super) fn shown_arguments(arguments: &[&str]) -> Vec<String> {
    let before = std::iter::once("").chain(arguments.iter().copied());
    before
        .zip(arguments)
        .map(|(before, argument)| shown_argument(before, argument))
        .collect()
}

/// Returns the displayed text of an argument after the argument `before`.
fn shown_argument(before: &str, text: &str) -> String {
    match before {
        "--header" | "-H" => shown_name(header(text), ": "),
        "--authorize-param" => shown_name(text.split_once('='), "="),
        // The value is JSON, or a file after `@`.
        "--static-oauth-client-info" | "--static-oauth-client-metadata"
            if text.starts_with('@') =>
        {
            text.to_owned()
        }
        "--static-oauth-client-info" | "--static-oauth-client-metadata" => HIDDEN.to_owned(),
        _ if PUBLIC.contains(&before) || is_callback_port(before, text) || is_known(text) => {
            text.to_owned()
        }
        _ => match text.split_once('=').filter(|(name, _)| is_option(name)) {
            Some(option) => shown_name(Some(option), "="),
            None => shown_url(text),
        },
    }
}

/// Returns the name of a pair with a hidden value. A text that is not a pair is hidden.
fn shown_name(pair: Option<(&str, &str)>, separator: &str) -> String {
    pair.map_or_else(
        || HIDDEN.to_owned(),
        |(name, _)| format!("{name}{separator}{HIDDEN}"),
    )
}

/// Whether a text is a command or an option, or names a package to start.
fn is_known(text: &str) -> bool {
    is_start(text) || ["connect", "mcp-remote"].contains(&text) || is_option(text)
}

/// Whether a text is an option by its form. A part of a secret can begin with a hyphen, too.
fn is_option(text: &str) -> bool {
    match text.strip_prefix("--") {
        Some(name) => name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
        None => text.len() == 2 && text.starts_with('-'),
    }
}

/// Whether a text is the port of the callback, which follows the URL.
fn is_callback_port(before: &str, text: &str) -> bool {
    before.starts_with("http") && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns an http URL without user information and fragment, and with a hidden query. Another text
/// is hidden.
fn shown_url(text: &str) -> String {
    let Some(mut url) = Url::parse(text)
        .ok()
        .filter(|url| ["http", "https"].contains(&url.scheme()))
    else {
        return HIDDEN.to_owned();
    };
    if url.set_username("").is_err() || url.set_password(None).is_err() {
        return HIDDEN.to_owned();
    }
    url.set_fragment(None);
    let query = if url.query().is_some() { "?…" } else { "" };
    url.set_query(None);
    format!("{url}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2: no possible secret is displayed.
    #[test]
    fn secrets_are_hidden() {
        for (name, arguments, shown) in [
            (
                "the start of the package",
                "-y mcp-remote@latest",
                "-y mcp-remote@latest",
            ),
            ("a URL", "https://a.example/mcp", "https://a.example/mcp"),
            (
                "user information",
                "https://me:secret@a.example/mcp",
                "https://a.example/mcp",
            ),
            (
                "a query",
                "https://a.example/mcp?key=secret",
                "https://a.example/mcp?…",
            ),
            (
                "a fragment",
                "https://a.example/mcp#secret",
                "https://a.example/mcp",
            ),
            ("another scheme", "ftp://a.example/secret", "…"),
            (
                "the callback port",
                "https://a.example/ 9696",
                "https://a.example/ 9696",
            ),
            ("digits elsewhere", "--pin 12345", "--pin …"),
            ("a header", "--header A:secret", "--header A: …"),
            ("a header in short", "-H A:secret", "-H A: …"),
            ("a header without a name", "--header secret", "--header …"),
            (
                "a parameter",
                "--authorize-param k=secret",
                "--authorize-param k=…",
            ),
            (
                "a parameter without a name",
                "--authorize-param secret",
                "--authorize-param …",
            ),
            (
                "a client",
                "--static-oauth-client-info {\"secret\"}",
                "--static-oauth-client-info …",
            ),
            (
                "a client's metadata",
                "--static-oauth-client-metadata {\"a\"}",
                "--static-oauth-client-metadata …",
            ),
            (
                "a client in a file",
                "--static-oauth-client-info @/a.json",
                "--static-oauth-client-info @/a.json",
            ),
            (
                "a public option",
                "--transport http-only",
                "--transport http-only",
            ),
            ("an unknown option", "--token secret", "--token …"),
            ("an unknown option with =", "--token=secret", "--token=…"),
            ("a value like an option", "--token -secret", "--token …"),
            ("a value like an option with =", "--Secret=1", "…"),
            ("a switch", "--debug", "--debug"),
            ("a text", "secret", "…"),
        ] {
            let arguments: Vec<&str> = arguments.split(' ').collect();
            assert_eq!(shown_arguments(&arguments).join(" "), shown, "{name}");
        }
    }
}
