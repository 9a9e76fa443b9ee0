//! The command line of `portcullis demo`.

use std::net::SocketAddr;

use clap::Args;
use portcullis_config::parse_listen_address;

#[derive(Args)]
pub struct Demo {
    /// Where the protected server listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000", value_parser = parse_listen_address)]
    pub(crate) listen: SocketAddr,
    /// Where the development authorization server listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9000", value_parser = parse_listen_address)]
    pub(crate) idp_listen: SocketAddr,
    /// Let the protected server issue the tokens itself (`[broker]`), and sign users in at the
    /// development server, which then imitates Microsoft Entra ID: clients cannot register there.
    #[arg(long)]
    pub(crate) broker: bool,
    /// Grant every authorization request without consent, as the user alice.
    #[arg(long)]
    pub(crate) auto_consent: bool,
}
