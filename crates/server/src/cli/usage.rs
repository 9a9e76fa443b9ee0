//! What clap's errors about arguments leave out.

use clap::{
    Command, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Adds the option to the error of a file without one: `check portcullis.toml` is meant as
/// `check --config portcullis.toml`. `arguments` are those of the command line, after the program.
pub(crate) fn with_option_of_file(
    mut error: Error,
    mut command: Command,
    arguments: impl Iterator<Item = String>,
) -> Error {
    let file = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text))
            if error.kind() == ErrorKind::UnknownArgument && !text.starts_with('-') =>
        {
            text.clone()
        }
        _ => return error,
    };
    command.build();
    let mut names = arguments.filter(|argument| !argument.starts_with('-'));
    let has_config = names
        .find_map(|name| command.find_subcommand(name))
        .is_some_and(|command| {
            command
                .get_arguments()
                .any(|argument| argument.get_long() == Some("config"))
        });
    if has_config {
        let tip = StyledStr::from(format!("write `--config {file}`"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::cli::Cli;

    /// J9: a configuration file without its option is named with the option.
    #[test]
    fn a_file_without_its_option_gets_it() {
        let error = |arguments: &[&str]| {
            let all = ["portcullis"].iter().chain(arguments);
            let error = Cli::try_parse_from(all).err().unwrap();
            let arguments = arguments.iter().map(|argument| (*argument).to_owned());
            with_option_of_file(error, Cli::command(), arguments).to_string()
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
        for arguments in [&["check", "--jsn"][..], &["completions", "bash", "my.toml"]] {
            let text = error(arguments);
            assert!(!text.contains("--config"), "{text}");
        }
    }
}
