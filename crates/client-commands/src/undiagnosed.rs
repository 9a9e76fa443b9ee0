//! [`with_diagnosis`]: the command that finds the cause, in errors of requests.

mod command;

use std::fmt;

use portcullis_client::{ClientError, StartUrl, error_chain};
use portcullis_mcp_client::McpError;
use portcullis_terminal::advice;

use self::command::{doctor, doctor_with_login, explain_token};
use crate::{cli, sign_in::TOKEN_VARIABLE};

/// An error whose cause another command can find.
#[derive(Debug)]
struct Undiagnosed {
    /// With its causes and advice.
    text: String,
    /// The command, and what it does.
    diagnosis: String,
}

/// Adds the command that finds the cause to the end of an error's text, if the server cannot be
/// reached, sends another response than clients expect, or rejects the token. Other errors are
/// returned as they are.
pub(crate) fn with_diagnosis(error: anyhow::Error, arguments: &cli::SignIn) -> anyhow::Error {
    let is_given = std::env::var_os(TOKEN_VARIABLE).is_some();
    match diagnosis(&error, arguments, is_given) {
        Some(diagnosis) => Undiagnosed {
            text: error_chain(&*error) + &advice(&*error),
            diagnosis,
        }
        .into(),
        None => error,
    }
}

/// The command for an error, and what it does. `is_given`: the token is from the environment.
fn diagnosis(error: &anyhow::Error, arguments: &cli::SignIn, is_given: bool) -> Option<String> {
    let start = StartUrl::parse(&arguments.url).ok()?;
    if !error.chain().any(is_of_server) {
        return None;
    }
    let command = match error.chain().any(is_rejected_token) {
        true if is_given => {
            let command = explain_token(arguments, &start);
            return Some(format!("`{command}` says why the token is rejected"));
        }
        true => doctor_with_login(arguments, &start),
        false => doctor(arguments, &start),
    };
    Some(format!("`{command}` names what to change"))
}

/// Whether the server rejects the token, which an examination without a token cannot explain.
fn is_rejected_token(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(McpError::Unauthorized { .. }))
}

fn is_of_server(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_endpoint = error.downcast_ref().is_some_and(|error| match error {
        // Otherwise the server says when to try again.
        McpError::Unauthorized { retry_after } | McpError::Status { retry_after, .. } => {
            retry_after.delay().is_none()
        }
        McpError::Unreachable { .. }
        | McpError::Fetch(_)
        | McpError::Redirected(_)
        | McpError::UnexpectedContent { .. }
        | McpError::InvalidResponse => true,
        _ => false,
    });
    let of_chain = error.downcast_ref().is_some_and(|error| {
        matches!(
            error,
            ClientError::Resource { .. }
                | ClientError::Redirected(_)
                | ClientError::NotChallenged { .. }
                | ClientError::Discovery(_)
        )
    });
    of_endpoint || of_chain
}

impl fmt::Display for Undiagnosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, diagnosis } = self;
        write!(f, "{text}; {diagnosis}")
    }
}

impl std::error::Error for Undiagnosed {}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use clap::{Arg, CommandFactory as _, Parser as _};
    use portcullis_discovery::{DiscoveryError, FetchError, NetworkFailure};
    use portcullis_mcp_client::RetryAfter;

    use super::*;
    use crate::cli::{Cli, ClientCommand};

    /// The options of a sign-in.
    fn arguments(options: &[&str]) -> cli::SignIn {
        let url = "https://mcp.example.com/mcp?key=hush";
        let words = ["portcullis", "login", url]
            .into_iter()
            .chain(options.iter().copied());
        match Cli::try_parse_from(words).unwrap().command {
            ClientCommand::Login(login) => login.sign_in,
            _ => unreachable!("the command is `login`"),
        }
    }

    /// J8: the command has the options without which it would fail earlier.
    #[test]
    fn the_command_repeats_options() {
        let reach = ["--ca-file", "my ca.pem", "--allow-private", "--assume-pkce"];
        let unreachable = || McpError::Unreachable {
            url: "https://mcp.example.com/mcp".to_owned(),
            error: FetchError::Timeout,
        };
        let rejected = || McpError::Unauthorized {
            retry_after: RetryAfter::default(),
        };
        for (error, is_given, options, expected) in [
            (
                unreachable(),
                false,
                &["--client-id", "me", "--exact-resource"][..],
                "`portcullis doctor --ca-file 'my ca.pem' --allow-private --assume-pkce --client-id me \
                 https://mcp.example.com/mcp` names what to change",
            ),
            (
                rejected(),
                true,
                &["--client-id", "me"],
                "`printenv PORTCULLIS_TOKEN | portcullis explain-token --ca-file 'my ca.pem' --allow-private --assume-pkce \
                 https://mcp.example.com/mcp` says why the token is rejected",
            ),
            (
                rejected(),
                false,
                &[
                    "--scope",
                    "a b",
                    "--exact-resource",
                    "--authorize-param",
                    "audience=x",
                ],
                "`portcullis doctor --login --ca-file 'my ca.pem' --allow-private --assume-pkce --exact-resource --scope 'a b' \
                 --authorize-param 'audience=x' https://mcp.example.com/mcp` names what to change",
            ),
        ] {
            let arguments = arguments(&[&reach[..], options].concat());
            assert_eq!(
                diagnosis(&error.into(), &arguments, is_given).as_deref(),
                Some(expected)
            );
        }
    }

    /// J8: with every option of a sign-in, the command is accepted and has all of them.
    #[test]
    fn every_option_of_a_sign_in_is_repeated() {
        let options = "--auto-consent --scope a --client-id me --client-secret-file /s --token-auth-method none \
                       --authorization-server https://auth.example.com --callback-port 1 --callback-path /c \
                       --callback-host ::1 --store /t --allow-private --accept-broader-resource --ca-file /a \
                       --no-resource --authorize-param a=b --assume-pkce --accept-unbound-token";
        let options: Vec<_> = options.split(' ').collect();
        let excluded = ["--no-browser", "--client-metadata-url", "--exact-resource"];
        let others = ["--help", "--version", "--device", "--fresh"];
        let mut cli = Cli::command();
        cli.build();
        let login = cli.find_subcommand("login").unwrap();
        for name in login.get_arguments().filter_map(Arg::get_long) {
            let option = format!("--{name}");
            let mut known = options.iter().chain(&excluded).chain(&others);
            assert!(known.any(|known| *known == option), "{option}");
        }
        let start = StartUrl::parse("https://mcp.example.com/mcp").unwrap();
        let command = doctor_with_login(&arguments(&options), &start);
        let words: Vec<_> = command
            .replace('\'', "")
            .split(' ')
            .map(str::to_owned)
            .collect();
        for option in options {
            assert!(
                words.iter().any(|word| word == option),
                "{option}: {command}"
            );
        }
        Cli::try_parse_from(words).unwrap();
    }

    /// J8: the error of a request ends with the command to run, after its causes and advice.
    #[test]
    fn errors_of_the_server_name_the_command() {
        let unreachable = McpError::Unreachable {
            url: "https://mcp.example.com/mcp".to_owned(),
            error: FetchError::network(NetworkFailure::Resolve),
        };
        let mismatch = ClientError::Discovery(DiscoveryError::ResourceMismatch {
            requested: "http://localhost:3000/mcp".to_owned(),
            found: "http://127.0.0.1:3000/mcp".to_owned(),
        });
        for (error, words) in [
            (
                anyhow::Error::from(unreachable),
                &["cannot reach", "HTTPS_PROXY"][..],
            ),
            (
                anyhow::Error::from(mismatch).context("a hint"),
                &[
                    "a hint: cannot find",
                    "use the URL http://127.0.0.1:3000/mcp",
                ],
            ),
        ] {
            let text = with_diagnosis(error, &arguments(&[])).to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
            let end = "; `portcullis doctor https://mcp.example.com/mcp` names what to change";
            assert!(text.ends_with(end), "{text}");
            assert!(!text.contains("hush"), "{text}");
        }
        for other in [
            anyhow!("PARAMS is not JSON"),
            McpError::InvalidParams.into(),
            ClientError::TooManySignIns.into(),
        ] {
            let text = format!("{other:#}");
            assert_eq!(
                format!("{:#}", with_diagnosis(other, &arguments(&[]))),
                text
            );
        }
    }
}
