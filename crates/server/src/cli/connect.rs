//! The command line of `portcullis connect`.

use clap::{Args, ValueEnum};

use super::SignIn;

/// Let a client that speaks over standard input and output use a remote MCP server.
///
/// Put this command into the client's configuration where it wants a program to start. Standard input and output carry
/// the protocol and nothing else; what a person should know goes to standard error. The token of a login is used;
/// where there is none, the browser opens at the first message, once for all instances that were started. PORTCULLIS_TOKEN
/// in the environment, or an `Authorization` header, takes the place of that.
#[derive(Args)]
pub(crate) struct Connect {
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// A header to send with every request, such as `X-Team: blue`; may be repeated. `${NAME}` in its value stands for
    /// an environment variable.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The HTTP transport to use.
    #[arg(long, value_enum, value_name = "TRANSPORT", default_value_t)]
    pub(crate) transport: Transport,
    /// How large one message may be, in MiB, in either direction.
    #[arg(long, value_name = "MIB", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_message: u16,
    /// How long an answer may take to begin, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

/// Which HTTP transport to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Streamable HTTP, or HTTP with SSE where the server speaks nothing newer.
    #[default]
    Any,
    /// Streamable HTTP alone.
    Http,
    /// HTTP with SSE alone, the transport of 2024-11-05.
    Sse,
}
