use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use http::HeaderName;
use portcullis_bridge::BridgeSettings;
use portcullis_client::{StartUrl, StartUrlError};
use portcullis_metadata::Secret;

use super::{
    arguments::{Argument, Arguments, header},
    files::{Variables, header_lines, json_argument},
    redirect::Redirect,
    session::{SessionId, authorize_parameter, client_metadata_url, headers, resource},
};

/// The arguments of `portcullis connect` for those of mcp-remote.
#[derive(Debug)]
pub(crate) struct Translation {
    /// The arguments of `portcullis connect`.
    pub(crate) arguments: Vec<String>,
    /// The client secret, which is not in the arguments.
    pub(crate) client_secret: Option<Secret>,
    /// Why options have no effect, one line each.
    pub(crate) notices: Vec<String>,
    /// Whether a value is known only at the start, from the environment or a file. The
    /// configuration must then use `portcullis mcp-remote` with the same arguments.
    pub(crate) depends_on_start: bool,
    /// The identifier of the sign-in in mcp-remote.
    pub(crate) session: SessionId,
    /// The names of the headers that were added.
    headers: Vec<String>,
}

/// The environment of a translation.
pub(crate) struct Context<'a> {
    /// The variables of the environment, if the server is started now.
    pub(crate) environment: Option<&'a Variables<'a>>,
    /// The directory of the store.
    pub(crate) store: Option<&'a Path>,
}

/// Parameters that are derived for each authorization request.
const DERIVED: [&str; 6] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "state",
    "code_challenge",
    "code_challenge_method",
];

/// The client authentication methods that can be chosen.
const METHODS: [&str; 3] = ["none", "client_secret_post", "client_secret_basic"];

/// The options that can be repeated. For every other one, the first value applies.
const LISTS: [&str; 4] = [
    "--authorize-param",
    "--header",
    "--header-file",
    "--ignore-tool",
];

impl Translation {
    /// Translates arguments. It reads the files in them and sends nothing. Fails when a value is
    /// invalid, a file cannot be read, or an option would weaken security. Errors contain no values
    /// of headers and no client secrets.
    pub(crate) fn of(arguments: &Arguments, context: &Context<'_>) -> anyhow::Result<Self> {
        let starts_now = context.environment.is_some();
        if starts_now || !arguments.url().contains("${") {
            check_url(arguments)?;
        }
        let sent = headers(header_texts(arguments)?);
        let mut translation = Self {
            arguments: vec!["connect".to_owned()],
            client_secret: None,
            notices: Vec::new(),
            depends_on_start: arguments.url().contains("${")
                || arguments.option("--header-file").is_some(),
            session: SessionId::of(arguments, &sent),
            headers: Vec::new(),
        };
        let mut seen: Vec<&str> = Vec::new();
        for argument in &arguments.0 {
            match argument {
                Argument::Url(url) => translation.push([url]),
                Argument::Port(port) => translation.push(["--callback-port", &port.to_string()]),
                Argument::Switch(name) => translation.switch(name, context),
                Argument::Option(name, _) if seen.contains(name) && !LISTS.contains(name) => {
                    translation.ignore(name, "it is repeated, and the first value applies");
                }
                Argument::Option("--header", text) => translation.header(text, &sent)?,
                Argument::Option(name, value) => {
                    seen.push(name);
                    translation.option(name, value, arguments, context)?;
                }
                Argument::MissingValue(name) => translation.ignore(name, "it has no value"),
                Argument::Unknown(text) => translation
                    .notices
                    .push(format!("{text} is ignored: mcp-remote does not know it")),
            }
        }
        // The remaining headers come from header files.
        for (name, value) in &sent {
            translation.header(&format!("{name}: {value}"), &sent)?;
        }
        let redirect = Redirect::of(arguments, &translation.session)?;
        if redirect.is_path_ignored {
            translation.ignore("--callback-path", "it does not begin with / or is reserved");
        }
        translation.arguments.extend(redirect.arguments);
        translation.separate_store(&sent, arguments, context.store);
        Ok(translation)
    }

    fn push<const N: usize>(&mut self, arguments: [&str; N]) {
        match arguments.as_slice() {
            // A value that looks like an option must be joined to its option.
            [option, value] if value.starts_with('-') => {
                self.arguments.push(format!("{option}={value}"))
            }
            _ => self.arguments.extend(arguments.map(str::to_owned)),
        }
    }

    fn ignore(&mut self, name: &str, reason: &str) {
        self.notices.push(format!("{name} is ignored: {reason}"));
    }

    fn switch(&mut self, name: &str, context: &Context<'_>) {
        match name {
            "--client-credentials" => self.push(["--client-credentials"]),
            "--device-code" => self.push(["--device"]),
            "--disable-resource-parameter" => self.push(["--no-resource"]),
            "--disable-cookies" => self.ignore(
                name,
                "cookies are kept in memory only and sent to no other origin",
            ),
            "--debug" if context.environment.is_none() => {
                self.ignore(name, "set PORTCULLIS_LOG=debug in `env` instead")
            }
            "--silent" if context.environment.is_none() => {
                self.ignore(name, "set PORTCULLIS_LOG=off in `env` instead")
            }
            "--allow-http" => self.ignore(
                name,
                "the URL is https or on this machine, which is always allowed",
            ),
            "--ipv4" => self.ignore(
                name,
                "connections that fail over IPv6 are tried over IPv4 anyway",
            ),
            "--keep-alive" => self.ignore(name, KEEP_ALIVE),
            "--use-id-token" => self.ignore(
                name,
                "an ID token is for the client and not for servers; the access token is sent",
            ),
            // The proxy of the environment is always used; the others take effect before the
            // translation.
            _ => {}
        }
    }

    fn option(
        &mut self,
        name: &str,
        value: &str,
        arguments: &Arguments,
        context: &Context<'_>,
    ) -> anyhow::Result<()> {
        match name {
            "--authorize-param" => {
                let (key, _) = authorize_parameter(value)
                    .context("--authorize-param is not of the form `key=value`")?;
                ensure!(
                    !DERIVED.contains(&key),
                    "--authorize-param cannot set {key}: every sign-in has its own"
                );
                self.push(["--authorize-param", value]);
            }
            "--body-timeout" if value.trim() == "0" => {}
            "--body-timeout" => self.ignore(name, "silent streams stay open"),
            "--connect-timeout" => self.ignore(name, "the timeout of connections is fixed"),
            "--headers-timeout" => match seconds(value) {
                Some(seconds) => self.push(["--timeout", &seconds.to_string()]),
                None => self.ignore(name, "it is not a number of seconds"),
            },
            "--auth-timeout" => self.ignore(name, "a sign-in may take 5 min"),
            "--auth-success-url" => self.ignore(name, "the browser shows the page of this program"),
            "--ping-interval" => self.ignore(name, KEEP_ALIVE),
            "--protocol" if value == "legacy" => {}
            "--protocol" => self.ignore(
                name,
                "messages are forwarded unchanged, in the revision of the client",
            ),
            "--transport" => match value {
                "http-only" => self.push(["--transport", "http"]),
                "sse-only" => self.push(["--transport", "sse"]),
                "http-first" => {}
                "sse-first" => self.ignore(name, "HTTP is tried first, then SSE"),
                _ => self.ignore(
                    name,
                    "it is none of http-first, http-only, sse-first, sse-only",
                ),
            },
            "--ignore-tool" => bail!(
                "--ignore-tool is not supported, and without it the client could call the tools; deny them in the client, \
                 then remove the option"
            ),
            "--resource" if value.trim().is_empty() => self.push(["--no-resource"]),
            "--resource" if resource(arguments).is_none_or(|it| it == arguments.url()) => {}
            "--resource" => {
                let parsed = url::Url::parse(value.trim());
                ensure!(
                    parsed.is_ok(),
                    "--resource is not an absolute URI (RFC 8707)"
                );
                self.ignore(
                    name,
                    "the resource in the server's metadata is requested; the sign-in is stored separately",
                );
            }
            "--token-endpoint" => {
                ensure!(
                    arguments.has("--client-credentials"),
                    "--token-endpoint requires --client-credentials"
                );
                self.ignore(
                    name,
                    "the token endpoint comes from the metadata of the authorization server",
                );
            }
            "--client-metadata-url" => match client_metadata_url(arguments) {
                None => self.ignore(name, "it is not an https URL with a path"),
                Some(_) if arguments.option("--static-oauth-client-info").is_some() => {
                    self.ignore(name, "--static-oauth-client-info names the client");
                }
                Some(url) => self.push(["--client-metadata-url", url]),
            },
            "--authorization-server" => self.push(["--authorization-server", value]),
            "--static-oauth-client-info" => self.client(value, context)?,
            "--static-oauth-client-metadata" => self.client_metadata(value)?,
            // The headers, their files, and the parts of the redirect URI are translated elsewhere.
            _ => {}
        }
        Ok(())
    }

    /// Translates a manually registered client. A secret from the environment is known only at the
    /// start.
    fn client(&mut self, value: &str, context: &Context<'_>) -> anyhow::Result<()> {
        const NAME: &str = "--static-oauth-client-info";
        let client = json_argument(NAME, value, context.environment)?;
        let Some(client) = client else {
            self.depends_on_start = true;
            return Ok(());
        };
        let text = |name: &str| {
            client
                .get(name)
                .and_then(|value| value.as_str())
                .filter(|text| !text.is_empty())
        };
        self.push([
            "--client-id",
            text("client_id").with_context(|| format!("{NAME} has no client_id"))?,
        ]);
        self.client_secret = text("client_secret").map(Secret::new);
        Ok(())
    }

    fn client_metadata(&mut self, value: &str) -> anyhow::Result<()> {
        const NAME: &str = "--static-oauth-client-metadata";
        // mcp-remote replaces no variables in it.
        let Some(metadata) = json_argument(NAME, value, Some(&|_| None))? else {
            return Ok(());
        };
        for (member, value) in &metadata {
            match (member.as_str(), value.as_str()) {
                ("scope", Some(scope)) => self.push(["--scope", scope]),
                ("token_endpoint_auth_method", Some(method)) if METHODS.contains(&method) => {
                    self.push(["--token-auth-method", method]);
                }
                (member, _) => {
                    self.notices.push(format!(
                        "{member} in {NAME} is ignored: this program has its own"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Adds a header as written, unless a later one of the same name applies or it has been added.
    fn header(&mut self, text: &str, sent: &[(String, String)]) -> anyhow::Result<()> {
        let Some((name, value)) = header(text) else {
            self.ignore("--header", "it is not of the form `Name: value`");
            return Ok(());
        };
        let parsed: HeaderName = name
            .parse()
            .ok()
            .with_context(|| format!("--header {name}: the name is invalid"))?;
        let counts = sent
            .iter()
            .any(|(known, last)| known == name && last == value);
        if !counts || self.headers.iter().any(|known| known == name) {
            return Ok(());
        }
        self.headers.push(name.to_owned());
        if BridgeSettings::is_custom_header(&parsed) {
            self.push(["--header", text]);
        } else {
            self.notices.push(format!(
                "the header {name} is ignored: the transport sets it"
            ));
        }
        Ok(())
    }

    /// Selects a separate store, because mcp-remote separates sign-ins by resource, parameters and
    /// headers, so that one server can be used with several accounts.
    fn separate_store(
        &mut self,
        sent: &[(String, String)],
        arguments: &Arguments,
        store: Option<&Path>,
    ) {
        let is_signed_in_otherwise = sent
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let is_separate = !sent.is_empty()
            || arguments.option("--authorize-param").is_some()
            || resource(arguments).is_some_and(|resource| resource != arguments.url());
        let Some(store) = store.filter(|_| is_separate && !is_signed_in_otherwise) else {
            return;
        };
        let directory: PathBuf = store.join(format!("mcp-remote-{}", self.session.as_str()));
        self.push(["--store", &directory.to_string_lossy()]);
    }
}

/// The headers and the lines of header files, in order.
fn header_texts(arguments: &Arguments) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    for argument in &arguments.0 {
        match argument {
            Argument::Option("--header", text) => texts.push(text.clone()),
            Argument::Option("--header-file", file) => texts.extend(header_lines(Path::new(file))?),
            _ => {}
        }
    }
    Ok(texts)
}

const KEEP_ALIVE: &str = "no pings are sent; a session that the server ends is reopened";

/// Fails for a URL to which a token would be sent unencrypted.
fn check_url(arguments: &Arguments) -> anyhow::Result<()> {
    match StartUrl::parse(arguments.url()) {
        Ok(_) => Ok(()),
        Err(StartUrlError::Insecure) if arguments.has("--allow-http") => {
            bail!(
                "--allow-http is rejected except for this machine: tokens would be sent unencrypted; use an https URL"
            )
        }
        Err(error) => Err(error.into()),
    }
}

/// Seconds for `--timeout`, rounded up. 0 means no timeout, which is translated to one day.
fn seconds(text: &str) -> Option<u32> {
    let seconds: f64 = text
        .trim()
        .parse()
        .ok()
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))?;
    (0..=86_400_u32)
        .find(|whole| f64::from(*whole) >= seconds)
        .map(|whole| if whole == 0 { 86_400 } else { whole })
}
