//! `portcullis mcp-remote`: `portcullis connect` with the arguments of mcp-remote.

pub(crate) mod arguments;
mod files;
mod redirect;
pub(crate) mod session;
#[cfg(test)]
mod tests;
pub(crate) mod translation;

use std::process::ExitCode;

use clap::{Command, Parser};
use portcullis_client::store::CredentialStore;
use portcullis_discovery::Product;
use portcullis_metadata::EscapedText;
use portcullis_terminal::{output_error, report, tell};

use self::{
    arguments::Arguments,
    translation::{Context, Translation},
};
use crate::{
    cli::{Connect, McpRemote},
    command_error,
    import_mcp_remote::recorded_issuer,
};

/// The exit code for arguments that are invalid or would weaken security.
const REFUSED: u8 = 2;

/// Translates the arguments and connects. `command_line` is that of the whole program, for `--help`
/// and `--version`.
pub(crate) fn run(
    McpRemote { arguments: texts }: &McpRemote,
    product: Product,
    command_line: fn() -> Command,
) -> anyhow::Result<ExitCode> {
    let is_given = |names: &[&str]| texts.iter().any(|text| names.contains(&text.as_str()));
    if is_given(&["--help", "-h"]) {
        return answer(command_line(), &["mcp-remote", "--help"]);
    }
    if is_given(&["--version"]) {
        return answer(command_line(), &["--version"]);
    }
    let (mut connect, notices) = match translated(texts) {
        Ok(translated) => translated,
        Err(error) => {
            report(&command_error(error));
            return Ok(ExitCode::from(REFUSED));
        }
    };
    if !is_given(&["--silent"]) || is_given(&["--debug"]) {
        notices.iter().for_each(|notice| tell(EscapedText(notice)));
    }
    if let Some(file) = std::env::var_os(NODE_CERTIFICATES).filter(|file| !file.is_empty()) {
        connect.sign_in.ca_file.get_or_insert(file.into());
    }
    crate::connect::run(&connect, product)?;
    Ok(ExitCode::SUCCESS)
}

/// The variable of Node.js, and therefore of mcp-remote, for a file with additional trusted
/// certificates.
const NODE_CERTIFICATES: &str = "NODE_EXTRA_CA_CERTS";

/// The level of log messages that the arguments choose.
pub(crate) fn log_level(McpRemote { arguments }: &McpRemote) -> &'static str {
    match Arguments::parse(arguments.iter().map(String::as_str)) {
        Ok(arguments) if arguments.has("--debug") => "debug",
        Ok(arguments) if arguments.has("--silent") => "off",
        _ => "info",
    }
}

/// The arguments of `portcullis connect`, as the program parses them.
#[derive(Parser)]
struct Translated {
    #[command(flatten)]
    connect: Connect,
}

fn translated(texts: &[String]) -> anyhow::Result<(Connect, Vec<String>)> {
    let arguments = Arguments::parse(texts.iter().map(String::as_str))?;
    let store = CredentialStore::user_directory();
    let context = Context {
        environment: Some(&|name| std::env::var(name).ok()),
        store: store.as_deref(),
    };
    let Translation {
        arguments,
        client_secret,
        notices,
        session,
        ..
    } = Translation::of(&arguments, &context)?;
    // Its first argument is the name of the command. This error's text has options of `connect` and
    // can contain values.
    let Ok(Translated { mut connect }) = Translated::try_parse_from(arguments) else {
        anyhow::bail!(
            "the arguments have no equivalent for `portcullis connect`; see `portcullis connect --help`"
        )
    };
    connect.sign_in.client_secret = client_secret;
    if connect.sign_in.client_id.is_some() {
        connect.sign_in.recorded_issuer = recorded_issuer(&session, None);
    }
    Ok((connect, notices))
}

/// Prints what the program prints for these arguments.
fn answer(command_line: Command, arguments: &[&str]) -> anyhow::Result<ExitCode> {
    if let Err(text) = command_line.try_get_matches_from(["portcullis"].iter().chain(arguments)) {
        text.print().map_err(output_error)?;
    }
    Ok(ExitCode::SUCCESS)
}
