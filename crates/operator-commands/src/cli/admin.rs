//! The arguments of `portcullis admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The further help of `admin`.
pub(crate) const MORE: &str = "\
Examples:
  portcullis admin sessions --config portcullis.toml
  portcullis admin end --subject alice --socket /run/portcullis/admin.sock

Exit codes:
  0  done
  1  rejected, or the server cannot be reached
  2  invalid arguments
  3  done by this server, but not recorded, or not confirmed by all replicas; the message names the fix";

#[derive(Args)]
pub struct Admin {
    #[command(subcommand)]
    pub(crate) command: AdminCommand,
}

#[derive(Subcommand)]
pub(crate) enum AdminCommand {
    /// List the sessions in the table of a running server: hash, owner, age, last use and open
    /// streams.
    ///
    /// Sessions that no request has used since a restart are in no table. They are not listed, and
    /// continue at their next use.
    #[command(after_long_help = "Example:\n  portcullis admin sessions --subject alice")]
    Sessions(AdminSessions),
    /// End sessions: one by its hash, or all of a subject or a client.
    ///
    /// All sessions of a subject or a client end, including those in no table, and their event
    /// streams close. A client with a valid token can open a new session: revoke its tokens at the
    /// issuer first.
    #[command(
        after_long_help = "Examples:\n  portcullis admin end --session HASH\n  portcullis admin end --subject alice --note TICKET-1"
    )]
    End(AdminEnd),
    /// List the grants of the server's broker: identifier, owner, provider, scopes, resource, and
    /// when each began and was last used.
    ///
    /// A grant is what a user approved for one installation of a client. No token is shown.
    #[command(after_long_help = "Example:\n  portcullis admin grants --user alice")]
    Grants(AdminGrants),
    /// End grants of the server's broker: one, or all of a subject or a provider.
    ///
    /// Their access and refresh tokens are rejected, and the sessions and event streams of their
    /// users end. A user can sign in again: lock the user out at the provider first.
    #[command(after_long_help = "Example:\n  portcullis admin end-grants --grant ID")]
    EndGrants(AdminEndGrants),
    /// Drop the cached tokens of an issuer, end the event streams that they opened, and fetch the
    /// issuer's keys again.
    ///
    /// Each token is then verified again at its next use.
    #[command(
        after_long_help = "Example:\n  portcullis admin drop-tokens --issuer https://auth.example.com/realms/prod"
    )]
    DropTokens(AdminDropTokens),
}

// The server that a command is sent to, and the credentials and output of the command.
#[derive(Args)]
pub(crate) struct AdminTarget {
    /// The configuration file of the server, with its `[admin]` table. Default: portcullis.toml;
    /// without that file, the socket /run/portcullis/admin.sock if it exists.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["url", "socket"])]
    pub(crate) config: Option<PathBuf>,
    /// The URL of the listener for administrators, instead of a configuration file.
    #[arg(long, value_name = "URL", conflicts_with = "socket")]
    pub(crate) url: Option<String>,
    /// The unix socket of the listener for administrators, instead of a configuration file.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// A file with the admin token. Default: the source in the configuration file, else
    /// PORTCULLIS_ADMIN_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A PEM file with the certificates to trust for an https URL, instead of the system's.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct AdminSessions {
    #[command(flatten)]
    pub(crate) target: AdminTarget,
    /// Only sessions of this subject.
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// Only sessions of this client.
    #[arg(long)]
    pub(crate) client: Option<String>,
    /// Only sessions of this issuer's tokens.
    #[arg(long)]
    pub(crate) issuer: Option<String>,
    /// Only sessions of the resource with this URL.
    #[arg(long, value_name = "URL")]
    pub(crate) resource: Option<String>,
    /// Only the session with this hash.
    #[arg(long, value_name = "HASH")]
    pub(crate) session: Option<String>,
    /// The maximum number of sessions to print.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
}

impl AdminSessions {
    /// Whether the list can lack sessions of the table.
    pub(crate) fn has_filter(&self) -> bool {
        let filters = [
            &self.subject,
            &self.client,
            &self.issuer,
            &self.resource,
            &self.session,
        ];
        filters.iter().any(|filter| filter.is_some())
    }
}

#[derive(Args)]
pub(crate) struct AdminEnd {
    #[command(flatten)]
    pub(crate) target: AdminTarget,
    /// End all sessions of this subject.
    #[arg(long, required_unless_present_any = ["client", "session"])]
    pub(crate) subject: Option<String>,
    /// End all sessions of this client; with --subject, only those of this subject.
    #[arg(long)]
    pub(crate) client: Option<String>,
    /// The issuer of the subject or the client. Default: every issuer.
    #[arg(long)]
    pub(crate) issuer: Option<String>,
    /// End the session with this hash, which logs, the audit trail and `admin sessions` show.
    #[arg(long, value_name = "HASH", conflicts_with_all = ["subject", "client", "issuer"])]
    pub(crate) session: Option<String>,
    /// A note for the audit trail, such as a ticket number.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

#[derive(Args)]
pub(crate) struct AdminGrants {
    #[command(flatten)]
    pub(crate) target: AdminTarget,
    /// Only grants of this user: the subject (`sub`) of the access tokens.
    #[arg(long, visible_alias = "user")]
    pub(crate) subject: Option<String>,
    /// Only grants of this client.
    #[arg(long)]
    pub(crate) client: Option<String>,
    /// Only grants of users who signed in at this provider.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Only the grant with this identifier: the claim `sid` of its access tokens.
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
    /// The maximum number of grants to print.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
}

#[derive(Args)]
pub(crate) struct AdminEndGrants {
    #[command(flatten)]
    pub(crate) target: AdminTarget,
    /// End all grants of this user: the subject (`sub`) of the access tokens.
    #[arg(long, visible_alias = "user", required_unless_present_any = ["provider", "grant"])]
    pub(crate) subject: Option<String>,
    /// Only grants of this client, which is every installation of a program.
    #[arg(long)]
    pub(crate) client: Option<String>,
    /// End all grants of users who signed in at this provider; with --subject, only those of this
    /// user.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// End the grant with this identifier, which logs, the audit trail and `admin grants` show.
    #[arg(long, value_name = "ID", conflicts_with_all = ["subject", "client", "provider"])]
    pub(crate) grant: Option<String>,
    /// A note for the audit trail, such as a ticket number.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

#[derive(Args)]
pub(crate) struct AdminDropTokens {
    #[command(flatten)]
    pub(crate) target: AdminTarget,
    /// The issuer, exactly as in the configuration.
    #[arg(long)]
    pub(crate) issuer: String,
    /// A note for the audit trail, such as a ticket number.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}
