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
