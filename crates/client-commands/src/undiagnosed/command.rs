//! The commands that find a cause, with the options of the command that failed.

use std::path::Path;

use portcullis_client::{StartUrl, provider::AuthorizeParameter};
use portcullis_terminal::shell_word;

use crate::{cli, sign_in::TOKEN_VARIABLE};

/// Returns the command that examines the server without a sign-in.
pub(super) fn doctor(arguments: &cli::SignIn, start: &StartUrl) -> String {
    let mut command = Command::new("portcullis doctor");
    command.reach(arguments);
    // Without it, a client is registered.
    command.option("--client-id", arguments.client_id.as_deref());
    command.of(start)
}

/// Returns the command that explains the token of the environment.
pub(super) fn explain_token(arguments: &cli::SignIn, start: &StartUrl) -> String {
    let mut command = Command::new(&format!(
        "printenv {TOKEN_VARIABLE} | portcullis explain-token"
    ));
    command.reach(arguments);
    command.of(start)
}

/// Returns the command that signs in with the same options, and uses the token.
pub(super) fn doctor_with_login(arguments: &cli::SignIn, start: &StartUrl) -> String {
    let mut command = Command::new("portcullis doctor --login");
    command.reach(arguments);
    command.sign_in(arguments);
    command.of(start)
}

/// A command line for a POSIX shell.
struct Command(String);

impl Command {
    fn new(program: &str) -> Self {
        Self(program.to_owned())
    }

    /// The options that every examination has. They decide which requests can be sent.
    fn reach(&mut self, arguments: &cli::SignIn) {
        self.file("--ca-file", arguments.ca_file.as_deref());
        self.flag("--allow-private", arguments.allow_private);
        self.flag("--assume-pkce", arguments.provider.assume_pkce);
    }

    /// The further options of a sign-in.
    fn sign_in(&mut self, arguments: &cli::SignIn) {
        self.flag("--auto-consent", arguments.auto_consent);
        self.flag("--no-browser", arguments.no_browser);
        self.flag(
            "--accept-broader-resource",
            arguments.accept_broader_resource,
        );
        self.flag("--exact-resource", arguments.exact_resource);
        self.flag("--no-resource", arguments.provider.no_resource);
        self.flag(
            "--accept-unbound-token",
            arguments.provider.accept_unbound_token,
        );
        for (name, value) in [
            ("--scope", &arguments.scope),
            ("--client-id", &arguments.client_id),
            ("--token-auth-method", &arguments.token_auth_method),
            ("--client-metadata-url", &arguments.client_metadata_url),
            ("--authorization-server", &arguments.authorization_server),
            ("--callback-path", &arguments.callback_path),
            ("--callback-host", &arguments.callback_host),
        ] {
            self.option(name, value.as_deref());
        }
        let port = arguments.callback_port.map(|port| port.to_string());
        self.option("--callback-port", port.as_deref());
        for parameter in &arguments.provider.authorize_params {
            self.option("--authorize-param", Some(&pair(parameter)));
        }
        self.file(
            "--client-secret-file",
            arguments.client_secret_file.as_deref(),
        );
        self.file("--store", arguments.store.directory.as_deref());
    }

    fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.word(name);
        }
    }

    fn option(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.word(name);
            self.word(&shell_word(value));
        }
    }

    fn file(&mut self, name: &str, path: Option<&Path>) {
        self.option(name, path.map(Path::to_string_lossy).as_deref());
    }

    fn word(&mut self, word: &str) {
        self.0.push(' ');
        self.0.push_str(word);
    }

    fn of(mut self, start: &StartUrl) -> String {
        self.word(&shell_word(&start.to_string()));
        self.0
    }
}

fn pair(parameter: &AuthorizeParameter) -> String {
    format!("{}={}", parameter.name(), parameter.value())
}
