//! The command lines of `portcullis login` and `portcullis logout`.

use clap::Args;

use super::SignIn;

#[derive(Args)]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// Sign in on another device: print a page and a code to enter there (RFC 8628). No browser is opened.
    #[arg(long, conflicts_with_all = ["auto_consent", "no_browser"])]
    pub(crate) device: bool,
    /// Register the client again, for an authorization server that no longer knows it.
    #[arg(long)]
    pub(crate) fresh: bool,
}

#[derive(Args)]
#[command(mut_arg("url", |url| url.required(false).default_value("").hide_default_value(true)))]
// The options of a sign-in are accepted, so that the same arguments can be given to every command.
#[command(mut_args(|argument| if applies_to_logout(argument.get_id().as_str()) { argument } else { argument.hide(true) }))]
pub(crate) struct Logout {
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// Also delete the registration of the client, so that the next login registers again.
    #[arg(long)]
    pub(crate) forget_client: bool,
    /// Sign out of every resource in the store, instead of one URL.
    #[arg(long)]
    pub(crate) all: bool,
}

/// Whether an option has an effect on a logout: those of the store, of requests, and of the client that revokes the token.
fn applies_to_logout(option: &str) -> bool {
    const APPLY: [&str; 9] = [
        "url",
        "forget_client",
        "all",
        "store",
        "allow_private",
        "ca_file",
        "client_id",
        "client_secret_file",
        "token_auth_method",
    ];
    APPLY.contains(&option)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    /// The help of `logout` has only options that have an effect.
    #[test]
    fn logout_offers_what_applies() {
        let mut cli = Cli::command();
        cli.build();
        let logout = cli.find_subcommand_mut("logout").unwrap();
        let help = logout.render_long_help().to_string();
        for option in
            ["--store", "--allow-private", "--ca-file", "--client-secret-file", "--forget-client", "--all", "--help"]
        {
            assert!(help.contains(option), "{option}: {help}");
        }
        for option in [
            "--auto-consent",
            "--no-browser",
            "--scope",
            "--callback-port",
            "--callback-path",
            "--assume-pkce",
            "--no-resource",
        ] {
            assert!(!help.contains(option), "{option}: {help}");
        }
    }
}
