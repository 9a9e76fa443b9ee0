//! The arguments as they are displayed: possible secrets are hidden.

use url::Url;

use super::launcher::is_start;
use crate::command::mcp_remote::arguments::header;

pub(super) const HIDDEN: &str = "…";

/// The options whose values are shown.
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

/// The displayed text of each argument.
pub(super) fn shown_arguments(arguments: &[&str]) -> Vec<String> {
    let mut previous = "";
    let mut shown = Vec::with_capacity(arguments.len());
    for &argument in arguments {
        shown.push(shown_argument(previous, argument));
        previous = argument;
    }
    shown
}

fn shown_argument(option: &str, text: &str) -> String {
    match option {
        "--header" | "-H" => {
            return header(text).map_or_else(|| HIDDEN.to_owned(), |(name, _)| format!("{name}: {HIDDEN}"));
        }
        "--authorize-param" => {
            return text.split_once('=').map_or_else(|| HIDDEN.to_owned(), |(key, _)| format!("{key}={HIDDEN}"));
        }
        "--static-oauth-client-info" | "--static-oauth-client-metadata" if text.starts_with('@') => {
            return text.to_owned();
        }
        "--static-oauth-client-info" | "--static-oauth-client-metadata" => return HIDDEN.to_owned(),
        _ if PUBLIC.contains(&option) => return text.to_owned(),
        _ => {}
    }
    // The port of the callback follows the URL.
    let is_port = option.starts_with("http") && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_start(text) || ["connect", "mcp-remote"].contains(&text) || is_port {
        return text.to_owned();
    }
    if is_option(text) {
        return text.to_owned();
    }
    if let Some((name, _)) = text.split_once('=').filter(|(name, _)| is_option(name)) {
        return format!("{name}={HIDDEN}");
    }
    match Url::parse(text) {
        Ok(url) if ["http", "https"].contains(&url.scheme()) => shown_url(url),
        _ => HIDDEN.to_owned(),
    }
}

/// Whether a text is an option by its form. A part of a secret can begin with a hyphen, too.
fn is_option(text: &str) -> bool {
    match text.strip_prefix("--") {
        Some(name) => name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
        None => text.len() == 2 && text.starts_with('-'),
    }
}

/// A URL without user information, query and fragment. Its path is shown, although it can contain a secret. A removed query is shown as `…`, so that the user sees that there is
/// one.
fn shown_url(mut url: Url) -> String {
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user && (url.set_username("").is_err() || url.set_password(None).is_err()) {
        return HIDDEN.to_owned();
    }
    if url.query().is_some() {
        url.set_query(Some(HIDDEN));
    }
    url.set_fragment(None);
    url.to_string().replace("%E2%80%A6", HIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2: no possible secret is shown.
    #[test]
    fn secrets_are_hidden() {
        let arguments = [
            "-y",
            "mcp-remote@latest",
            "https://me:secret@a.example/mcp?key=secret",
            "9696",
            "--header",
            "A: secret",
            "--header",
            "secret",
            "--authorize-param",
            "k=secret",
            "--static-oauth-client-info",
            "{\"secret\"}",
            "--static-oauth-client-info",
            "@/a.json",
            "--transport",
            "http-only",
            "--token=secret",
            "secret",
            "--debug",
            "--token",
            "-secret",
            "--Secret=1",
            "--pin",
            "12345",
        ];
        let shown = shown_arguments(&arguments);
        assert_eq!(shown.len(), arguments.len());
        let expected = "-y mcp-remote@latest https://a.example/mcp?… 9696 --header A: … --header … --authorize-param k=… \
                        --static-oauth-client-info … --static-oauth-client-info @/a.json --transport http-only --token=… … --debug --token … … --pin …";
        assert_eq!(shown.join(" "), expected);
    }
}
