//! The command line of `portcullis connect`.

use clap::{Args, ValueEnum};

use super::SignIn;

#[derive(Args)]
pub struct Connect {
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// Sign in on another device: print a page and a code to enter there (RFC 8628). No browser is
    /// opened.
    #[arg(long, conflicts_with_all = ["auto_consent", "no_browser", "client_credentials", "token_command"])]
    pub(crate) device: bool,
    /// Sign in as the client itself, without a user (RFC 6749 section 4.4). Requires `--client-id`
    /// and `--client-secret-file`. Give `--authorization-server` too: otherwise the server's
    /// metadata decides where the secret is sent.
    #[arg(long, requires = "client_id", conflicts_with_all = ["auto_consent", "no_browser", "token_command"])]
    pub(crate) client_credentials: bool,
    /// A program and its arguments that print an access token or a JSON token response, instead of
    /// a sign-in. It runs without a shell, for at most 10 s, and prints at most 16 KiB. It runs
    /// again before the token expires and after a 401.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["auto_consent", "no_browser"])]
    pub(crate) token_command: Option<String>,
    /// A header to send with every request, such as `X-Team: blue`; may be repeated. `${NAME}` in
    /// its value is replaced by that environment variable.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The HTTP transport to use.
    #[arg(long, value_enum, value_name = "TRANSPORT", default_value_t)]
    pub(crate) transport: Transport,
    /// The largest message in either direction, in MiB. All messages in progress share 256 MiB, or
    /// three times this size.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_message: u16,
    /// The timeout for the start of a response, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

/// The HTTP transports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Streamable HTTP, or HTTP with SSE if the server supports nothing newer.
    #[default]
    Any,
    /// Only Streamable HTTP.
    Http,
    /// Only HTTP with SSE, the transport of 2024-11-05.
    Sse,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::Value;

    use crate::cli::{Cli, ClientCommand};

    const GUIDE: &str = concat!(
        include_str!("../../../../docs/use/connect.md"),
        include_str!("../../../../docs/use/connect-sign-in.md"),
    );

    /// The servers of a client's configuration, in whichever member the client lists them.
    fn servers(configuration: &Value) -> impl Iterator<Item = &Value> {
        let members = configuration.as_object().unwrap();
        assert_eq!(members.len(), 1, "{configuration}");
        members
            .values()
            .flat_map(|servers| servers.as_object().unwrap().values())
    }

    /// The guide's configurations start this program with valid arguments.
    #[test]
    fn the_guides_configurations_start_the_bridge() {
        let blocks: Vec<_> = GUIDE
            .split("```json\n")
            .skip(1)
            .map(|rest| rest.split_once("```").unwrap().0)
            .collect();
        assert_eq!(blocks.len(), 6);
        for block in blocks {
            for server in servers(&serde_json::from_str(block).unwrap()) {
                assert_eq!(server["command"], "portcullis", "{block}");
                let arguments = server["args"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|argument| argument.as_str().unwrap());
                let cli = Cli::try_parse_from(["portcullis"].into_iter().chain(arguments)).unwrap();
                assert!(matches!(cli.command, ClientCommand::Connect(_)), "{block}");
            }
        }
    }
}
