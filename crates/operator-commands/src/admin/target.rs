use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use portcullis_config::{
    Overrides, SecretSource,
    file::{ADMIN_TOKEN_VARIABLE, AdminListen},
    plan::secret_file_warning,
};
use portcullis_metadata::{Secret, syntax::is_loopback};
use url::Url;

use crate::cli::AdminTarget;

const DEFAULT_CONFIG: &str = "portcullis.toml";
/// The socket that is used if nothing names a listener: that of the packaged service's folder for
/// unix sockets.
const DEFAULT_SOCKET: &str = "/run/portcullis/admin.sock";

/// The listener of a server, and its token.
pub(super) struct Target {
    pub(super) place: Place,
    pub(super) token: Secret,
    pub(super) ca_file: Option<PathBuf>,
}

/// The place of a listener.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Unix(PathBuf),
    /// A URL with scheme, host and port.
    Url(Url),
}

impl Target {
    /// Returns the listener of the arguments. Nothing is sent. Fails when the configuration cannot
    /// be read or has no `[admin]`, the URL would expose the token, or there is no token.
    pub(super) fn new(arguments: &AdminTarget) -> anyhow::Result<Self> {
        let (place, configured) = match (&arguments.url, &arguments.socket) {
            (Some(url), _) => (Place::Url(parse_url(url)?), None),
            (None, Some(socket)) => (Place::Unix(socket.clone()), None),
            (None, None)
                if arguments.config.is_none()
                    && !Path::new(DEFAULT_CONFIG).exists()
                    && Path::new(DEFAULT_SOCKET).exists() =>
            {
                (Place::Unix(DEFAULT_SOCKET.into()), None)
            }
            (None, None) => {
                let (place, token) = of_config(
                    arguments
                        .config
                        .as_deref()
                        .unwrap_or(Path::new(DEFAULT_CONFIG)),
                )?;
                (place, Some(token))
            }
        };
        let source = match (&arguments.token_file, configured) {
            (Some(file), _) => SecretSource::File(file.clone()),
            (None, Some(configured)) => configured,
            (None, None) => SecretSource::Env(ADMIN_TOKEN_VARIABLE.to_owned()),
        };
        ensure!(
            !matches!(&source, SecretSource::Env(name) if env::var_os(name).is_none()),
            "there is no admin token: set {ADMIN_TOKEN_VARIABLE} or name a file with --token-file"
        );
        let key = if arguments.token_file.is_some() {
            "--token-file"
        } else {
            "admin.token"
        };
        if let Some(warning) = source
            .file()
            .and_then(|file| secret_file_warning(key, file))
        {
            tracing::warn!("{warning}");
        }
        Ok(Self {
            place,
            token: source.read()?,
            ca_file: arguments.ca_file.clone(),
        })
    }
}

fn of_config(file: &Path) -> anyhow::Result<(Place, SecretSource)> {
    let loaded = crate::load(file, Overrides::default())
        .context("the listener for administrators is not known; name it with --url or --socket, or the configuration with --config")?;
    let Some(admin) = loaded.config.admin else {
        bail!(
            "{} has no [admin] table; add one with `listen`, or name the listener with --url or --socket",
            file.display()
        )
    };
    let place = match admin.listen {
        AdminListen::Unix(path) => Place::Unix(path),
        AdminListen::Tcp(_) if admin.tls.is_some() => {
            bail!(
                "the listener for administrators uses TLS; name it as in its certificate, with --url https://HOST:PORT"
            )
        }
        AdminListen::Tcp(address) => Place::Url(Url::parse(&format!(
            "http://{}",
            portcullis_config::reachable_address(address)
        ))?),
    };
    Ok((place, admin.token))
}

fn parse_url(text: &str) -> anyhow::Result<Url> {
    let url = Url::parse(text).with_context(|| format!("--url {text:?} is not a URL"))?;
    ensure!(
        url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url),
        "--url {text:?} is neither https nor http to this machine, so that the token could be read on the network"
    );
    let has_more = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
    ensure!(
        !has_more && url.username().is_empty() && url.password().is_none(),
        "--url has more than scheme, host and port"
    );
    Ok(url)
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "figment's jail wants its own error"
)]
mod tests {
    use figment::Jail;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn arguments() -> AdminTarget {
        AdminTarget {
            config: None,
            url: None,
            socket: None,
            token_file: None,
            ca_file: None,
            json: false,
        }
    }

    fn error(arguments: &AdminTarget) -> String {
        Target::new(arguments)
            .err()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default()
    }

    /// E12: the configuration names the listener and the token's source; flags replace both.
    #[test]
    fn the_configuration_names_the_listener() {
        Jail::expect_with(|jail| {
            jail.clear_env();
            assert!(error(&arguments()).contains("--url or --socket"));
            let file = |admin: &str| {
                format!(
                    "base_url = \"http://127.0.0.1:3000\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n{admin}"
                )
            };
            jail.create_file("portcullis.toml", &file(""))?;
            assert!(error(&arguments()).contains("no [admin] table"));
            jail.create_file("token", TOKEN)?;
            jail.create_file(
                "portcullis.toml",
                &file("[admin]\nlisten = \"0.0.0.0:9900\"\ntoken = { file = \"token\" }"),
            )?;
            let target = Target::new(&arguments()).unwrap();
            assert_eq!(
                target.place,
                Place::Url(Url::parse("http://127.0.0.1:9900").unwrap())
            );
            assert_eq!(target.token, Secret::new(TOKEN));
            jail.create_file(
                "other.toml",
                &file("[admin]\nlisten = \"unix:/run/a.sock\""),
            )?;
            let other = AdminTarget {
                config: Some("other.toml".into()),
                ..arguments()
            };
            assert!(error(&other).contains("PORTCULLIS_ADMIN_TOKEN or name a file"));
            jail.set_env("PORTCULLIS_ADMIN_TOKEN", TOKEN);
            assert_eq!(
                Target::new(&other).unwrap().place,
                Place::Unix("/run/a.sock".into())
            );
            let tls = "[admin]\nlisten = \"0.0.0.0:9900\"\n[admin.tls]\ncertificates = \"/c\"\nkey = \"/k\"";
            jail.create_file("other.toml", &file(tls))?;
            assert!(error(&other).contains("--url https://HOST:PORT"));
            Ok(())
        });
    }

    /// J2: the token is never sent in clear text over a network.
    #[test]
    fn urls_do_not_expose_the_token() {
        for url in [
            "https://admin.example:9900",
            "http://127.0.0.1:9900",
            "http://localhost:9900/",
            "http://[::1]:9900",
        ] {
            assert!(parse_url(url).is_ok(), "{url}");
        }
        for url in [
            "http://10.0.0.1:9900",
            "http://admin.example",
            "ftp://localhost",
            "localhost:9900",
            "https://a/b",
            "https://u:p@a",
            "https://a?x",
        ] {
            assert!(parse_url(url).is_err(), "{url}");
        }
    }
}
