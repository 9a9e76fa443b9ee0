//! The command line of `portcullis serve`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;
use portcullis_config::parse_listen_address;

#[derive(Args)]
pub struct Serve {
    /// The configuration file (TOML). `PORTCULLIS_*` variables override its values.
    #[arg(long, short, value_name = "FILE", default_value = "portcullis.toml")]
    pub(crate) config: PathBuf,
    /// Address and port to listen on, instead of the configured one.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,
}
