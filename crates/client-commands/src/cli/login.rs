//! The command lines of `portcullis login` and `portcullis logout`.

use clap::Args;

use super::SignIn;

#[derive(Args)]
pub struct Login {
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// Sign in on another device: print a page and a code to enter there (RFC 8628). No browser is
    /// opened.
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
pub struct Logout {
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// Also delete the registration of the client, so that the next login registers again.
    #[arg(long)]
    pub(crate) forget_client: bool,
    /// Sign out of every resource in the store, instead of one URL.
    #[arg(long)]
    pub(crate) all: bool,
}

/// Whether the help of `logout` shows an option: those of the store, of requests, and of the client
/// that revokes the token.
fn applies_to_logout(option: &str) -> bool {
    const APPLY: [&str; 10] = [
        "url",
        "forget_client",
        "all",
        "store",
        "allow_private",
        "ca_file",
        "client_id",
        "client_secret_file",
        "client_metadata_url",
        "token_auth_method",
    ];
    APPLY.contains(&option)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory as _};

    use crate::cli::Cli;

    /// The help of `logout` has the options of a revocation, and none that is only for a sign-in.
    #[test]
    fn logout_offers_what_applies() {
        let mut cli = Cli::command();
        cli.build();
        let logout = cli.find_subcommand_mut("logout").unwrap();
        let mut with_value: Vec<_> = logout
            .get_opts()
            .filter(|option| !option.is_hide_set())
            .filter_map(Arg::get_long)
            .collect();
        with_value.sort_unstable();
        let expected = [
            "ca-file",
            "client-id",
            "client-metadata-url",
            "client-secret-file",
            "store",
            "token-auth-method",
        ];
        assert_eq!(with_value, expected);

        let help = logout.render_long_help().to_string();
        for flag in ["--allow-private", "--forget-client", "--all", "--help"] {
            assert!(help.contains(flag), "{flag}: {help}");
        }
        for flag in [
            "--auto-consent",
            "--no-browser",
            "--assume-pkce",
            "--no-resource",
            "--accept-",
        ] {
            assert!(!help.contains(flag), "{flag}: {help}");
        }
    }
}
