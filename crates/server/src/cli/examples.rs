//! Tests the examples in the help of the commands.

use clap::{CommandFactory as _, Parser as _};

use super::Cli;

/// J8: the help of every command and subcommand has an example, and all examples are valid.
#[test]
fn every_command_has_an_example() {
    let mut cli = Cli::command();
    cli.build();
    let mut without = Vec::new();
    for command in cli.get_subcommands_mut().filter(is_listed) {
        collect(command, &mut without);
    }
    assert!(without.is_empty(), "without an example: {without:?}");
}

fn is_listed(command: &&mut clap::Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// Adds the commands whose help has no example, and parses the examples of the others.
fn collect(command: &mut clap::Command, without: &mut Vec<String>) {
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let help = command.render_long_help().to_string();
    let examples = examples(&help);
    if examples.is_empty() {
        without.push(name.clone());
    }
    for words in examples {
        if let Err(error) = Cli::try_parse_from(&words) {
            panic!("{name}: {words:?}: {error}");
        }
    }
    for command in command.get_subcommands_mut().filter(is_listed) {
        collect(command, without);
    }
}

/// Returns the words of each example, without comments, redirections and pipes.
fn examples(help: &str) -> Vec<Vec<String>> {
    let help = help.replace("\\\n", " ");
    let lines = help
        .lines()
        .skip_while(|line| !matches!(line.trim_end(), "Example:" | "Examples:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "));
    let commands = lines.flat_map(|line| line.split(" | ")).map(str::trim);
    commands.map(words).collect()
}

/// Splits a command as a shell does, up to a redirection or a comment, which follows several
/// spaces.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = command;
    while !rest.is_empty() && !rest.starts_with(['>', '<']) {
        let (word, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').unwrap_or((quoted, "")),
            None => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        let next = after.trim_start();
        // The options on a continued line follow many spaces.
        if after.len() - next.len() > 1 && !next.starts_with("--") {
            break;
        }
        rest = next;
    }
    words
}
