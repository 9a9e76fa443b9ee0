//! Tests that commands are described in their help, and their options in the guides.

use clap::CommandFactory as _;

use super::Cli;

const ADMINISTRATION: &str = include_str!("../../../../docs/use/administration.md");
const AUDIT: &str = include_str!("../../../../docs/use/audit.md");
const CHECKING: &str = include_str!("../../../../docs/use/checking.md");
const CONNECT: &str = concat!(
    include_str!("../../../../docs/use/connect.md"),
    include_str!("../../../../docs/use/connect-sign-in.md"),
    include_str!("../../../../docs/use/connect-behavior.md"),
    include_str!("../../../../docs/use/connect-troubleshooting.md"),
);
const DIAGNOSIS: &str = include_str!("../../../../docs/use/diagnosis.md");
#[cfg(feature = "dev")]
const DEVELOPMENT_SERVER: &str = include_str!("../../../../docs/use/development-server.md");
const PACKAGES: &str = include_str!("../../../../docs/use/packages.md");
const INIT: &str = include_str!("../../../../docs/use/init.md");
const MIGRATION: &str = include_str!("../../../../docs/use/migrate-from-mcp-remote.md");

/// Whether the page contains the option itself, not only a longer one with the same beginning.
fn names(page: &str, option: &str) -> bool {
    let continues =
        |rest: &str| rest.starts_with(|next: char| next == '-' || next.is_ascii_alphanumeric());
    page.match_indices(option).any(|(at, _)| {
        page.get(at + option.len()..)
            .is_some_and(|rest| !continues(rest))
    })
}

/// A command is described by the list of commands, and not by a type of its arguments.
#[test]
fn commands_keep_their_descriptions() {
    for listed in Cli::command().get_subcommands() {
        let mut cli = Cli::command();
        let command = cli.find_subcommand_mut(listed.get_name()).unwrap();
        // The arguments are added when they are needed.
        drop(command.render_help());
        let about = |command: &clap::Command| command.get_about().map(ToString::to_string);
        assert_eq!(about(command), about(listed), "{}", listed.get_name());
    }
}

/// The guides document every option of these commands.
#[test]
fn the_guide_names_every_option() {
    let mut cli = Cli::command();
    cli.build();
    for (command, pages) in [
        ("admin", &[ADMINISTRATION][..]),
        ("check", &[CHECKING, CONNECT]),
        ("init", &[INIT, CONNECT]),
        ("connect", &[CONNECT]),
        ("login", &[CONNECT]),
        ("logout", &[CONNECT]),
        ("token", &[CONNECT]),
        ("call", &[CONNECT]),
        ("status", &[DIAGNOSIS, CONNECT]),
        ("list", &[DIAGNOSIS, CONNECT]),
        ("doctor", &[DIAGNOSIS, CONNECT]),
        ("explain-token", &[DIAGNOSIS, CONNECT]),
        #[cfg(feature = "dev")]
        ("idp", &[DEVELOPMENT_SERVER]),
        ("health", &[PACKAGES, CONNECT]),
        ("import-mcp-remote", &[CONNECT, MIGRATION]),
        ("audit verify", &[AUDIT, CONNECT]),
    ] {
        let command = command
            .split(' ')
            .fold(&cli, |cli, command| cli.find_subcommand(command).unwrap());
        let of_subcommands = command
            .get_subcommands()
            .flat_map(|command| command.get_arguments());
        for option in command
            .get_arguments()
            .chain(of_subcommands)
            .filter(|argument| !argument.is_hide_set())
            .filter_map(|argument| argument.get_long())
        {
            let option = format!("--{option}");
            let is_named = ["--help", "--version"].contains(&&*option)
                || pages.iter().any(|page| names(page, &option));
            assert!(is_named, "{} {option}", command.get_name());
        }
    }
}
