//! The command line of `portcullis check`.

use std::path::PathBuf;

use clap::Args;

/// What `check --help` shows after the options.
pub(crate) const MORE: &str = "\
Examples:
  portcullis check --config portcullis.toml
  portcullis check --deny-warnings --json        in a pipeline
  portcullis check --online                      before the first start";

/// What `config-schema --help` shows after the description.
pub(crate) const SCHEMA_MORE: &str = "\
Example:
  portcullis config-schema > portcullis.schema.json

Editors complete and check the configuration if its first line is
  #:schema ./portcullis.schema.json";

#[derive(Args)]
pub struct Check {
    /// The configuration file (TOML). `PORTCULLIS_*` variables override its values.
    #[arg(long, short, value_name = "FILE", default_value = "portcullis.toml")]
    pub(crate) config: PathBuf,
    /// Also query the live services: the port, the issuers with their keys and introspection
    /// endpoints, and the upstreams.
    ///
    /// Tokens are not needed. It sends a made-up token to introspection endpoints, and opens and
    /// ends a session at each upstream.
    #[arg(long)]
    pub(crate) online: bool,
    /// Print JSON: values, errors, warnings and notes, and with --online its steps.
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 2 if there are warnings.
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Do what `config-schema` does, which was an option of this command.
    #[arg(long, hide = true, conflicts_with_all = ["config", "online", "json", "deny_warnings"])]
    pub(crate) schema: bool,
}
