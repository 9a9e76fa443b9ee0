//! [`Arguments`]: the parsed argument list of mcp-remote 0.15.1.

use anyhow::{Context as _, bail};

/// The options that take no value.
pub(super) const SWITCHES: [&str; 11] = [
    "--allow-http",
    "--client-credentials",
    "--debug",
    "--device-code",
    "--disable-cookies",
    "--disable-resource-parameter",
    "--enable-proxy",
    "--ipv4",
    "--keep-alive",
    "--silent",
    "--use-id-token",
];

/// The options that take the next argument as their value, even if it begins with `--`. mcp-remote
/// does not know `--authorization-server`; it is accepted because the errors of
/// `portcullis connect` name it.
pub(super) const OPTIONS: [&str; 20] = [
    "--auth-success-url",
    "--auth-timeout",
    "--authorization-server",
    "--authorize-param",
    "--body-timeout",
    "--callback-path",
    "--client-metadata-url",
    "--connect-timeout",
    "--header",
    "--header-file",
    "--headers-timeout",
    "--host",
    "--ignore-tool",
    "--ping-interval",
    "--protocol",
    "--resource",
    "--static-oauth-client-info",
    "--static-oauth-client-metadata",
    "--token-endpoint",
    "--transport",
];

/// One argument, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// The URL of the server.
    Url(String),
    /// The callback port.
    Port(u16),
    /// An option without a value.
    Switch(&'static str),
    /// An option with its value.
    Option(&'static str, String),
    /// An option without its value.
    MissingValue(&'static str),
    /// An argument that mcp-remote ignores as unknown, without a value after `=`.
    Unknown(String),
}

/// The arguments in order.
#[derive(Clone, Debug)]
pub(crate) struct Arguments(pub(super) Vec<Argument>);

impl Arguments {
    /// Parses an argument list. The first argument that is not an option is the URL, and a number
    /// after it the port. If an option that is not a list is repeated, the first value applies.
    /// Fails when there is no URL.
    pub(crate) fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Self> {
        let mut parsed = Vec::new();
        let mut texts = texts.into_iter();
        let mut has_url = false;
        let mut has_port = false;
        while let Some(text) = texts.next() {
            let argument = if let Some(name) = named(&SWITCHES, text) {
                Argument::Switch(name)
            } else if let Some(name) = named(&OPTIONS, text) {
                texts.next().map_or(Argument::MissingValue(name), |value| {
                    Argument::Option(name, value.to_owned())
                })
            } else if text.starts_with('-') {
                Argument::Unknown(text.split('=').next().unwrap_or_default().to_owned())
            } else if !has_url {
                has_url = true;
                Argument::Url(text.to_owned())
            } else if let (false, Some(port)) = (has_port, port(text)?) {
                has_port = true;
                Argument::Port(port)
            } else {
                // It can be a part of a secret that a shell has split.
                Argument::Unknown("an argument after the URL".to_owned())
            };
            parsed.push(argument);
        }
        if !has_url {
            bail!(
                "the URL of the server is missing: portcullis mcp-remote URL [CALLBACK-PORT] [OPTIONS]"
            );
        }
        Ok(Self(parsed))
    }

    pub(crate) fn url(&self) -> &str {
        self.0
            .iter()
            .find_map(|argument| {
                if let Argument::Url(url) = argument {
                    Some(url.as_str())
                } else {
                    None
                }
            })
            .unwrap_or_default()
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.0.iter().find_map(|argument| {
            if let Argument::Port(port) = argument {
                Some(*port)
            } else {
                None
            }
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|argument| matches!(argument, Argument::Switch(switch) if *switch == name))
    }

    /// The value of an option that applies.
    pub(crate) fn option(&self, name: &'static str) -> Option<&str> {
        self.options(name).next()
    }

    /// All values of an option.
    pub(crate) fn options(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(move |argument| match argument {
            Argument::Option(option, value) if *option == name => Some(value.as_str()),
            _ => None,
        })
    }
}

/// Splits `Name: value` as mcp-remote does: the name has ASCII letters, digits, `-` and `_`.
pub(crate) fn header(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(':')?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_name.then(|| (name, value.trim_start()))
}

fn named(names: &[&'static str], text: &str) -> Option<&'static str> {
    names.iter().copied().find(|name| *name == text)
}

/// Parses a port. None for 0, which means the default.
fn port(text: &str) -> anyhow::Result<Option<u16>> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let port: u16 = text
        .parse()
        .ok()
        .with_context(|| format!("the callback port {text} is not below 65536"))?;
    Ok((port != 0).then_some(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Vec<Argument> {
        Arguments::parse(texts.iter().copied()).unwrap().0
    }

    #[test]
    fn arguments_are_parsed_like_mcp_remote_does() {
        let arguments = parsed(&[
            "https://a.example/mcp",
            "9696",
            "--debug",
            "--header",
            "--silent",
            "--frob=secret",
            "x",
        ]);
        let expected = [
            Argument::Url("https://a.example/mcp".into()),
            Argument::Port(9696),
            Argument::Switch("--debug"),
            Argument::Option("--header", "--silent".into()),
            Argument::Unknown("--frob".into()),
            Argument::Unknown("an argument after the URL".into()),
        ];
        assert_eq!(arguments, expected);
        assert_eq!(
            parsed(&["--header", "A: b", "u"])[1],
            Argument::Url("u".into())
        );
        assert_eq!(parsed(&["u", "0"]).len(), 2);
        assert_eq!(
            parsed(&["u", "--host"])[1],
            Argument::MissingValue("--host")
        );
        assert!(Arguments::parse(["--debug"]).is_err());
        assert!(Arguments::parse(["u", "65536"]).is_err());
    }

    #[test]
    fn headers_are_split_like_mcp_remote_does() {
        assert_eq!(header("A-b_1:  c: d "), Some(("A-b_1", "c: d ")));
        assert_eq!(header("A:"), Some(("A", "")));
        for text in ["", ":", "a b: c", "é: x", "plain"] {
            assert_eq!(header(text), None, "{text}");
        }
    }
}
