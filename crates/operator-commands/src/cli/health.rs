//! The command line of `portcullis health`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

#[derive(Args)]
pub struct Health {
    /// The configuration file (TOML) of the server. `PORTCULLIS_*` variables override its values.
    #[arg(long, short, value_name = "FILE", default_value = "portcullis.toml")]
    pub(crate) config: PathBuf,
    /// The address and port of the listener, instead of the configured one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Request `/readyz` instead of `/healthz`: also fail if a resource has no usable issuer,
    /// during a shutdown, and with `[shared]` while the replica does not know the ends of others.
    #[arg(long)]
    pub(crate) ready: bool,
}
