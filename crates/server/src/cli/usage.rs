//! What clap's errors about arguments leave out.

use clap::{
    Command, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Options of other programs, the option of a command that they mean, and what to write.
const OTHER_OPTIONS: &[(&[&str], &str, &str)] = &[
    (
        &["-f", "-c", "--config-file"],
        "config",
        "write `--config <FILE>`",
    ),
    (
        &["-p", "--port", "--address", "--bind", "--host"],
        "listen",
        "write `--listen <ADDRESS:PORT>`",
    ),
    (
        &["--log-level", "--loglevel", "--debug", "--verbose", "-v"],
        "config",
        "set the environment variable PORTCULLIS_LOG, such as PORTCULLIS_LOG=debug",
    ),
    (&["--strict"], "deny-warnings", "write `--deny-warnings`"),
];

/// Adds the option to the error of a file without one: `check portcullis.toml` is meant as
/// `check --config portcullis.toml`. Adds what is meant by options of other programs, too.
/// `arguments` are those of the command line, after the program.
pub(crate) fn with_meant_option(
    mut error: Error,
    mut command: Command,
    arguments: impl Iterator<Item = String>,
) -> Error {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) if error.kind() == ErrorKind::UnknownArgument => {
            text.clone()
        }
        _ => return error,
    };
    let meant = if argument.starts_with('-') {
        let mut others = OTHER_OPTIONS.iter();
        others
            .find(|(names, ..)| names.contains(&argument.as_str()))
            .map(|(_, option, tip)| (*option, (*tip).to_owned()))
    } else {
        Some(("config", format!("write `--config {argument}`")))
    };
    command.build();
    let mut names = arguments.filter(|argument| !argument.starts_with('-'));
    let named = names.find_map(|name| command.find_subcommand(name));
    let has = |option: &str| {
        let mut options = named.into_iter().flat_map(Command::get_arguments);
        options.any(|argument| argument.get_long() == Some(option))
    };
    if let Some((_, tip)) = meant.filter(|(option, _)| has(option)) {
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::cli::Cli;

    /// J9: a configuration file without its option is named with the option, and options of other
    /// programs with what they mean.
    #[test]
    fn the_meant_option_is_named() {
        let error = |arguments: &[&str]| {
            let all = ["portcullis"].iter().chain(arguments);
            let error = Cli::try_parse_from(all).err().unwrap();
            let arguments = arguments.iter().map(|argument| (*argument).to_owned());
            with_meant_option(error, Cli::command(), arguments).to_string()
        };
        for arguments in [
            &["check", "my.toml"][..],
            &["check", "--json", "my.toml"],
            &["serve", "my.toml"],
            &["--log-format", "json", "serve", "my.toml"],
        ] {
            let text = error(arguments);
            assert!(text.contains("write `--config my.toml`"), "{text}");
        }
        for (arguments, tip) in [
            (&["check", "-f", "my.toml"][..], "write `--config <FILE>`"),
            (
                &["serve", "--port", "4100"],
                "write `--listen <ADDRESS:PORT>`",
            ),
            (&["serve", "--port=4100"], "write `--listen <ADDRESS:PORT>`"),
            (&["serve", "--log-level", "debug"], "PORTCULLIS_LOG=debug"),
            (&["check", "--strict"], "write `--deny-warnings`"),
        ] {
            let text = error(arguments);
            assert!(text.contains(tip), "{arguments:?}: {text}");
        }
        for arguments in [&["check", "--jsn"][..], &["completions", "bash", "my.toml"]] {
            let text = error(arguments);
            assert!(!text.contains("--config"), "{text}");
        }
    }
}
