//! `portcullis import-mcp-remote`: replaces mcp-remote in the configurations of MCP clients.

mod diff;
mod edit;
mod jsonc;
mod launcher;
mod locations;
mod mask;
mod migration;
mod rewrite;
mod secret_file;
#[cfg(test)]
mod tests;
mod tokens;

use std::{
    io::{self, BufRead as _, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, anyhow};
use owo_colors::{OwoColorize as _, Stream};
use portcullis_client::{StartUrl, store::CredentialStore};
use portcullis_files::ConfigFile;
use portcullis_metadata::EscapedText;
use portcullis_terminal::{is_yes, print, remedy, tell};
use zeroize::Zeroizing;

use self::{
    edit::applied,
    jsonc::Document,
    locations::{Location, default_locations},
    migration::Migration,
    rewrite::{Replacement, Rewrite, Server},
    tokens::StoredToken,
};
use crate::{cli::ImportMcpRemote, command_error};
pub(crate) use tokens::recorded_issuer;

/// The changes of one file.
struct Change {
    path: PathBuf,
    file: ConfigFile,
    text: Zeroizing<String>,
    servers: Vec<Server>,
}

/// Prints the changes, and writes them after confirmation. Fails when a configuration could not be
/// read or written.
pub(crate) fn run(arguments: &ImportMcpRemote) -> anyhow::Result<ExitCode> {
    let store = arguments
        .store
        .directory
        .clone()
        .map(std::path::absolute)
        .transpose()?
        .or_else(CredentialStore::user_directory);
    let program = program(arguments)?;
    let replacement = Replacement {
        program: &program,
        store: store.as_deref(),
        is_store_chosen: arguments.store.directory.is_some(),
    };
    let locations = match &arguments.config {
        Some(path) => vec![Location {
            client: "the configuration",
            path: path.clone(),
        }],
        None => default_locations(),
    };
    let mut changes = Vec::new();
    let mut failures = 0;
    for Location { client, path } in locations {
        match planned(&path, &replacement) {
            Ok(Some(change)) => {
                show(client, &change)?;
                changes.push(change);
            }
            Ok(None) if arguments.config.is_some() => {
                report(&path, &anyhow!("it does not exist"), &mut failures)
            }
            Ok(None) => {}
            Err(error) => report(&path, &error, &mut failures),
        }
    }
    changes.retain(|change| change.servers.iter().any(|server| server.result.is_ok()));
    if changes.is_empty() {
        tell("there is nothing to change");
    } else if !arguments.write && !is_confirmed() {
        tell("nothing was written; repeat the command with --write to write the changes");
    } else {
        for change in &changes {
            if let Err(error) = write(change) {
                report(&change.path, &error, &mut failures);
            }
        }
    }
    Ok(if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn report(path: &Path, error: &anyhow::Error, failures: &mut usize) {
    *failures += 1;
    portcullis_terminal::report(&command_error(anyhow!(
        "{}: {error:#}{}",
        path.display(),
        remedy(error.as_ref())
    )));
}

/// The program to enter in the configurations.
fn program(arguments: &ImportMcpRemote) -> anyhow::Result<String> {
    if let Some(command) = &arguments.command {
        return Ok(command.clone());
    }
    let path = std::env::current_exe()
        .context("the path of this program is unknown; name it with --command")?;
    path.into_os_string()
        .into_string()
        .ok()
        .context("the path of this program is not UTF-8; name it with --command")
}

/// Plans the changes of a file; none if there is no file.
fn planned(path: &Path, replacement: &Replacement<'_>) -> anyhow::Result<Option<Change>> {
    let Some(file) = ConfigFile::read(path)? else {
        return Ok(None);
    };
    // Clients create empty files.
    if file.text.trim().is_empty() {
        return Ok(Some(Change {
            path: path.to_owned(),
            text: file.text.clone(),
            file,
            servers: Vec::new(),
        }));
    }
    let document = Document::parse(&file.text).context("it is not JSON")?;
    let rewrite = Rewrite::of(&file.text, &document, replacement);
    let text = Zeroizing::new(applied(
        &file.text,
        0..file.text.len(),
        &rewrite.edits,
        |edit| &edit.text,
    ));
    if !rewrite.edits.is_empty() {
        Document::parse(&text)
            .ok()
            .context("the changes could not be planned; change it by hand")?;
        print(format_args!("{}", EscapedText(&path.display().to_string())))?;
        for line in diff::diff(&file.text, &rewrite.edits, &rewrite.masks) {
            print_line(&line)?;
        }
    }
    Ok(Some(Change {
        path: path.to_owned(),
        file,
        text,
        servers: rewrite.servers,
    }))
}

fn print_line(line: &str) -> io::Result<()> {
    let line = EscapedText(line).to_string();
    match line.get(..1) {
        Some("-") => print(line.if_supports_color(Stream::Stdout, |line| line.red())),
        Some("+") => print(line.if_supports_color(Stream::Stdout, |line| line.green())),
        _ => print(line),
    }
}

/// Prints the changes to each server outside the configuration.
fn show(client: &str, change: &Change) -> io::Result<()> {
    for Server {
        name,
        notices,
        result,
    } in &change.servers
    {
        let name = format!("{client}, server {:?}", EscapedText(name).to_string());
        match result {
            Err(reason) => print(format_args!("{name}: not changed: {}", EscapedText(reason)))?,
            Ok(migration) => {
                for line in notices.iter().cloned().chain(migration_lines(migration)) {
                    print(format_args!("{name}: {}", EscapedText(&line)))?;
                }
            }
        }
    }
    Ok(())
}

fn migration_lines(migration: &Migration) -> Vec<String> {
    let secret = migration.client_secret.as_ref();
    let mut lines: Vec<_> = secret
        .map(|file| format!("the client secret moves to {}", file.path.display()))
        .into_iter()
        .collect();
    match StoredToken::find(migration) {
        Ok(None) => {}
        Ok(Some(token)) => lines.push(format!(
            "the sign-in at {} moves to {}; mcp-remote then has none",
            token.issuer(),
            token.store().display()
        )),
        Err(error) => {
            let remedy = remedy(error.as_ref());
            lines.push(format!(
                "the sign-in cannot be moved: {error:#}{remedy}; sign in again"
            ));
        }
    }
    lines
}

/// Binds a client that was registered by hand to the authorization server at which mcp-remote used
/// it.
async fn bind_client(migration: &Migration) -> anyhow::Result<()> {
    let known = (
        &migration.client_id,
        migration.recorded_issuer(),
        &migration.store,
    );
    let (Some(client_id), Some(issuer), Some(store)) = known else {
        return Ok(());
    };
    let Ok(start) = StartUrl::parse(migration.arguments.url()) else {
        return Ok(());
    };
    Ok(CredentialStore::in_directory(store)
        .bind_client(client_id, &start, &issuer)
        .await?)
}

fn is_confirmed() -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    tell("Quit the clients first. Write these changes? [y/N]");
    let mut answer = String::new();
    let read = io::stdin().lock().take(64).read_line(&mut answer);
    read.is_ok() && is_yes(&answer)
}

/// Writes the secrets, moves the tokens, and writes the configuration last: while it names
/// mcp-remote, another run continues after a failure.
fn write(change: &Change) -> anyhow::Result<()> {
    let migrations: Vec<&Migration> = change
        .servers
        .iter()
        .filter_map(|server| server.result.as_ref().ok())
        .collect();
    for migration in &migrations {
        migration
            .client_secret
            .as_ref()
            .map_or(Ok(()), secret_file::SecretFile::write)?;
    }
    let runtime = crate::control_runtime()?;
    for migration in migrations {
        runtime.block_on(bind_client(migration))?;
        // The reason was printed before.
        let Ok(Some(token)) = StoredToken::find(migration) else {
            continue;
        };
        let store = token.store().to_owned();
        if !runtime.block_on(token.take())? {
            tell(format_args!(
                "{} already has a sign-in; that of mcp-remote stays where it is",
                store.display()
            ));
        }
    }
    let backup = change.file.replace(&change.text)?;
    tell(format_args!(
        "{} is written; the original is {}",
        change.path.display(),
        backup.display()
    ));
    Ok(())
}
