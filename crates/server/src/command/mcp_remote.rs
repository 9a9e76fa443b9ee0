//! `portcullis mcp-remote`: `portcullis connect` with the arguments of mcp-remote.

pub(crate) mod arguments;
mod files;
mod redirect;
pub(crate) mod session;
#[cfg(test)]
mod tests;
pub(crate) mod translation;

use std::process::ExitCode;

use clap::Parser as _;
use portcullis_client::CredentialStore;

use self::{
    arguments::Arguments,
    translation::{Context, Translation},
};
use super::{import_mcp_remote::recorded_issuer, text::output_error};
use crate::cli::{Cli, Command, McpRemote};

/// The exit code for arguments that are invalid or would weaken security.
const REFUSED: u8 = 2;

/// Translates the arguments and connects.
pub(crate) fn run(McpRemote { arguments: texts }: &McpRemote) -> anyhow::Result<ExitCode> {
    let is_given = |names: &[&str]| texts.iter().any(|text| names.contains(&text.as_str()));
    if is_given(&["--help", "-h"]) {
        return answer(&["mcp-remote", "--help"]);
    }
    if is_given(&["--version"]) {
        return answer(&["--version"]);
    }
    let (mut connect, notices) = match translated(texts) {
        Ok(translated) => translated,
        Err(error) => {
            super::report(&error);
            return Ok(ExitCode::from(REFUSED));
        }
    };
    if !is_given(&["--silent"]) || is_given(&["--debug"]) {
        notices.iter().for_each(|notice| super::tell(portcullis_metadata::EscapedText(notice)));
    }
    if let Some(file) = std::env::var_os(NODE_CERTIFICATES).filter(|file| !file.is_empty()) {
        connect.sign_in.ca_file.get_or_insert(file.into());
    }
    super::connect::run(&connect)?;
    Ok(ExitCode::SUCCESS)
}

/// The variable of Node.js, and therefore of mcp-remote, for a file with additional trusted certificates.
const NODE_CERTIFICATES: &str = "NODE_EXTRA_CA_CERTS";

/// The level of log messages that a command's arguments choose.
pub(crate) fn log_level(command: &Command) -> &'static str {
    let Command::McpRemote(McpRemote { arguments }) = command else { return "info" };
    match Arguments::parse(arguments.iter().map(String::as_str)) {
        Ok(arguments) if arguments.has("--debug") => "debug",
        Ok(arguments) if arguments.has("--silent") => "off",
        _ => "info",
    }
}

fn translated(texts: &[String]) -> anyhow::Result<(crate::cli::Connect, Vec<String>)> {
    let arguments = Arguments::parse(texts.iter().map(String::as_str))?;
    let store = CredentialStore::user_directory();
    let context = Context { environment: Some(&|name| std::env::var(name).ok()), store: store.as_deref() };
    let Translation { arguments, client_secret, notices, session, .. } = Translation::of(&arguments, &context)?;
    let cli = Cli::try_parse_from(["portcullis".to_owned()].into_iter().chain(arguments));
    // This error's text has options of `connect` and can contain values.
    let Ok(Cli { command: Command::Connect(mut connect), .. }) = cli else {
        anyhow::bail!("the arguments have no equivalent for `portcullis connect`; see `portcullis connect --help`")
    };
    connect.sign_in.client_secret = client_secret;
    if connect.sign_in.client_id.is_some() {
        connect.sign_in.recorded_issuer = recorded_issuer(&session, None);
    }
    Ok((connect, notices))
}

/// Prints what clap prints for these arguments.
fn answer(arguments: &[&str]) -> anyhow::Result<ExitCode> {
    if let Err(text) = Cli::try_parse_from(["portcullis"].iter().chain(arguments)) {
        text.print().map_err(output_error)?;
    }
    Ok(ExitCode::SUCCESS)
}
