//! The operator commands, as clap parses them.
//!
//! Types whose options are flattened into a command have no doc comments: clap would show one
//! instead of the command's description.

mod admin;
mod audit;
mod check;
#[cfg(feature = "dev")]
mod demo;
mod health;
#[cfg(feature = "dev")]
mod idp;
mod init;
mod serve;
#[cfg(not(feature = "dev"))]
mod without_dev;

use clap::Subcommand;

pub use self::audit::AuditCommand;
#[cfg(not(feature = "dev"))]
pub(crate) use self::without_dev::{Demo, Idp};
pub(crate) use self::{
    admin::{
        Admin, AdminCommand, AdminDropTokens, AdminEnd, AdminEndGrants, AdminGrants, AdminSessions,
        AdminTarget,
    },
    audit::AuditVerify,
    check::Check,
    health::Health,
    init::Init,
    serve::Serve,
};
#[cfg(feature = "dev")]
pub(crate) use self::{
    demo::Demo,
    idp::{Algorithm as IdpAlgorithm, ClientAuth as IdpClientAuth, Idp, Like as IdpLike},
};

/// A command of those who run a protected server.
// Deferred, so that only the arguments of the given command are built. The descriptions in the list
// of commands must therefore be here.
#[derive(Subcommand)]
#[command(defer = true)]
#[non_exhaustive]
pub enum OperatorCommand {
    /// Protect the endpoints of a configuration file.
    #[command(after_long_help = "Example:\n  portcullis serve --config portcullis.toml")]
    Serve(Serve),
    /// Start a development authorization server and a protected MCP server, both on loopback.
    #[cfg_attr(
        feature = "dev",
        command(after_long_help = "Example:\n  portcullis demo --auto-consent")
    )]
    #[cfg_attr(not(feature = "dev"), command(hide = true))]
    Demo(Demo),
    /// Validate a configuration and print every value with its origin.
    ///
    /// Each error and warning is one line with file, line, key and fix. Exits with 1 if there are
    /// errors, or problems of services (`--online`), and with 2 if there are only warnings and
    /// `--deny-warnings` is given.
    #[command(after_long_help = check::MORE)]
    Check(Check),
    /// Print the JSON Schema of the configuration, for editors.
    ///
    /// It is the one by which `check` names unknown keys, of this version of the program.
    #[command(after_long_help = check::SCHEMA_MORE)]
    ConfigSchema,
    /// List and end the sessions of a running server, and drop its cached tokens.
    ///
    /// The server must have an `[admin]` table in its configuration.
    #[command(after_long_help = admin::MORE)]
    Admin(Admin),
    /// Write a configuration: asks for its values in a terminal, or takes them from options, and
    /// tests them.
    ///
    /// The tests are those of `check --online`. With problems, or if the file exists, it is written
    /// only after confirmation or with `--force`.
    #[command(after_long_help = init::MORE)]
    Init(Init),
    /// Ask the server of a configuration whether it is healthy, for the health checks of
    /// containers.
    ///
    /// It requests `/healthz` at the listener on this machine. Exits with 0 if the response is 200,
    /// and otherwise with 1.
    #[command(after_long_help = "Example:\n  portcullis health --config portcullis.toml")]
    Health(Health),
    /// Start the development authorization server alone.
    ///
    /// It issues tokens to anyone, for any user name, and therefore listens on loopback only. It
    /// supports metadata, registration, client ID metadata documents, the code flow with PKCE and a
    /// consent page, the device flow, refresh tokens (for clients that request `offline_access`),
    /// client credentials, DPoP, introspection and revocation. Nothing is kept after it stops.
    #[cfg_attr(feature = "dev", command(after_long_help = idp::MORE))]
    #[cfg_attr(not(feature = "dev"), command(hide = true))]
    Idp(Idp),
}

/// A program with these commands only.
#[cfg(test)]
#[derive(clap::Parser)]
#[command(name = "portcullis", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: OperatorCommand,
}
