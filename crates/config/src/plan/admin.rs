use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, ensure};
use portcullis_guard::OriginPolicy;
use portcullis_metadata::Secret;
use url::Url;

use super::{
    TlsFiles, optional,
    secret_contents::{BYTE_ORDER_MARK, MARKED},
    unix_socket,
};
use crate::{
    Diagnostics, SecretSource,
    file::{Admin, AdminListen},
};

/// The minimum length of a token in characters.
const MIN_TOKEN: usize = 32;
/// The maximum length of a token in characters.
const MAX_TOKEN: usize = 1024;
/// How a token is generated.
const GENERATE: &str = "generate one with `openssl rand -base64 32`";

/// The validated listener for administrators.
#[derive(Clone)]
pub struct AdminPlan {
    /// The address or the path of the socket.
    pub listen: AdminListen,
    /// Allows everything.
    pub token: Secret,
    /// Allows only to read the metrics.
    pub metrics_token: Option<Secret>,
    /// The accepted `Host` values.
    pub hosts: OriginPolicy,
    /// `None` if the listener uses plain HTTP.
    pub tls: Option<TlsFiles>,
}

/// Validates `[admin]`, and reads the tokens and the certificate. `server` is the address of the
/// listener of clients.
///
/// Adds an error for each invalid value, and returns `None` if there is one. No message contains a
/// part of a token.
pub(super) fn plan(
    configured: &Admin,
    server: SocketAddr,
    errors: &mut Diagnostics<'_>,
) -> Option<AdminPlan> {
    let Admin {
        listen,
        token,
        metrics_token,
        tls,
        allowed_hosts,
    } = configured;
    let is_valid_address = check_address(configured, server, errors);
    let hosts = hosts(listen, allowed_hosts, errors);
    let tls = optional(tls.as_ref(), |files| {
        TlsFiles::for_listener(files, "admin.tls", &mut errors.table("tls"))
    });
    let token = errors.take("token", read_token(token));
    let metrics_token = optional(metrics_token.as_ref(), |source| {
        errors.take("metrics_token", read_token(source))
    });
    let token = token?;
    let metrics_token = metrics_token?;
    if metrics_token.as_ref() == Some(&token) {
        let text = "it is the same as admin.token, so that it would allow everything";
        errors.add("metrics_token", format!("{text}; {GENERATE}"));
        return None;
    }
    let plan = AdminPlan {
        listen: listen.clone(),
        token,
        metrics_token,
        hosts: hosts?,
        tls: tls?,
    };
    is_valid_address.then_some(plan)
}

/// Checks that the token cannot be read on the network, and that the address is free and has a
/// name. Adds an error for each rule that is violated. Returns whether there is none.
fn check_address(configured: &Admin, server: SocketAddr, errors: &mut Diagnostics<'_>) -> bool {
    let Admin {
        listen,
        tls,
        allowed_hosts,
        ..
    } = configured;
    let mut is_valid = true;
    let mut reject = |key: &str, text: String| {
        is_valid = false;
        errors.add(key, text);
    };
    let address = match listen {
        AdminListen::Tcp(address) => address,
        AdminListen::Unix(path) => {
            if tls.is_some() {
                reject(
                    "tls",
                    "tls is set, and a unix socket has no TLS; remove it".to_owned(),
                );
            }
            if let Err(error) = unix_socket::check_place(path) {
                reject("listen", format!("admin.listen = \"{listen}\" {error}"));
            }
            return is_valid;
        }
    };
    let ip = address.ip();
    if overlap(*address, server) {
        let problem = match *address == server {
            true => "is also `listen`".to_owned(),
            false => format!(
                "has the port of listen = \"{server}\", and one of both is on all addresses"
            ),
        };
        reject(
            "listen",
            format!("admin.listen = \"{listen}\" {problem}; choose another port"),
        );
    }
    if !ip.is_loopback() && tls.is_none() {
        reject(
            "listen",
            format!(
                "admin.listen = \"{listen}\" is not on loopback and has no TLS, so that the token could be read on the \
                 network; add [admin.tls] with `certificates` and `key`, or listen on 127.0.0.1"
            ),
        );
    }
    if ip.is_unspecified() && allowed_hosts.is_empty() {
        reject(
            "listen",
            format!(
                "admin.listen = \"{listen}\" is on all addresses; list in admin.allowed_hosts the names by which \
                 administrators reach it"
            ),
        );
    }
    is_valid
}

/// Returns whether a process cannot listen on both addresses. A listener on `[::]` is also one on
/// all IPv4 addresses. Port 0 is a free port.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let covers =
        |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() != 0
        && one.port() == other.port()
        && (ip == other_ip || covers(ip, other_ip) || covers(other_ip, ip))
}

/// Returns the policy that accepts the hosts of loopback, of the address, and the configured ones.
fn hosts(
    listen: &AdminListen,
    allowed: &[String],
    errors: &mut Diagnostics<'_>,
) -> Option<OriginPolicy> {
    let mut hosts = errors.take("listen", loopback_hosts())?;
    if let AdminListen::Tcp(address) = listen {
        hosts = errors.take("listen", hosts.allow_host(&host_of(address.ip())))?;
    }
    errors.take_all(
        "allowed_hosts",
        allowed.iter().map(|host| hosts.clone().allow_host(host)),
    )?;
    allowed
        .iter()
        .try_fold(hosts, |hosts, host| hosts.allow_host(host))
        .ok()
}

/// Returns the policy that accepts loopback hosts.
fn loopback_hosts() -> anyhow::Result<OriginPolicy> {
    Ok(OriginPolicy::for_base_url(&Url::parse(
        "http://localhost",
    )?)?)
}

/// Returns an address as in a URL.
fn host_of(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// Reads a token. Fails when it cannot be read, has a wrong length, or cannot be sent in a header.
fn read_token(source: &SecretSource) -> anyhow::Result<Secret> {
    let token = source
        .read()
        .with_context(|| format!("the listener needs a token; {GENERATE}"))?;
    ensure!(
        !token.secret().starts_with(BYTE_ORDER_MARK),
        "{source} {MARKED}"
    );
    let length = token.secret().len();
    ensure!(
        length >= MIN_TOKEN,
        "{source} has fewer than {MIN_TOKEN} characters; {GENERATE}"
    );
    ensure!(
        length <= MAX_TOKEN,
        "{source} has more than {MAX_TOKEN} characters; {GENERATE}"
    );
    ensure!(
        token.secret().bytes().all(|byte| byte.is_ascii_graphic()),
        "{source} has a character that a header cannot contain; {GENERATE}"
    );
    Ok(token)
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "figment's jail wants its own error"
)]
mod tests {
    use figment::Jail;

    use super::*;
    use crate::{Diagnostic, from_text};

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    /// Returns the plan with these lines of `[admin]`, and this token in the environment and in a
    /// file.
    fn plan_of(lines: &str, token: &str) -> Result<Option<AdminPlan>, String> {
        let mut result = Err(String::new());
        Jail::expect_with(|jail| {
            jail.set_env("PORTCULLIS_ADMIN_TOKEN", token);
            jail.create_file("token", token)?;
            let text = format!(
                "base_url = \"http://127.0.0.1:3000\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n[admin]\n{lines}"
            );
            let config = from_text(&text).unwrap();
            let planned = Diagnostics::collect(|errors| {
                optional(config.admin.as_ref(), |admin| {
                    plan(admin, config.listen, &mut errors.table("admin"))
                })
            });
            result = planned.map_err(|errors| Diagnostic::joined(&errors));
            Ok(())
        });
        result
    }

    /// F8: without TLS, the listener is on loopback or at a unix socket.
    #[test]
    fn other_addresses_need_tls() {
        for listen in ["127.0.0.1:9900", "[::1]:9900", "unix:/run/admin.sock"] {
            assert!(
                plan_of(&format!("listen = \"{listen}\""), TOKEN).is_ok(),
                "{listen}"
            );
        }
        for listen in ["0.0.0.0:9900", "192.0.2.1:9900", "[::]:9900"] {
            let error = plan_of(&format!("listen = \"{listen}\""), TOKEN)
                .err()
                .unwrap();
            assert!(
                error.contains("[admin.tls]") && error.contains(listen),
                "{error}"
            );
        }
        let files = "[admin.tls]\ncertificates = \"/c\"\nkey = \"/k\"";
        let error = plan_of(&format!("listen = \"0.0.0.0:9900\"\n{files}"), TOKEN)
            .err()
            .unwrap();
        assert!(error.contains("admin.allowed_hosts"), "{error}");
        let error = plan_of(&format!("listen = \"192.0.2.1:9900\"\n{files}"), TOKEN)
            .err()
            .unwrap();
        assert!(
            error.contains("admin.tls.certificates = \"/c\" cannot be read"),
            "{error}"
        );
        let error = plan_of(&format!("listen = \"unix:/s\"\n{files}"), TOKEN)
            .err()
            .unwrap();
        assert!(error.contains("a unix socket has no TLS"), "{error}");
        for (listen, words) in [
            ("127.0.0.1:3000", "is also `listen`"),
            (
                "0.0.0.0:3000",
                "has the port of listen = \"127.0.0.1:3000\"",
            ),
            (
                "unix:/nowhere/admin.sock",
                "is in a folder that does not exist",
            ),
        ] {
            let lines = format!("listen = \"{listen}\"");
            let error = plan_of(&lines, TOKEN).err().unwrap();
            assert!(error.contains(words), "{error}");
        }
    }

    /// F8: the listener has addresses of its own.
    #[test]
    fn both_listeners_can_be_bound() {
        for (one, other, overlaps) in [
            ("127.0.0.1:8080", "127.0.0.1:8080", true),
            ("127.0.0.1:8080", "127.0.0.1:8081", false),
            ("127.0.0.1:8080", "192.0.2.1:8080", false),
            ("127.0.0.1:8080", "[::1]:8080", false),
            ("127.0.0.1:8080", "0.0.0.0:8080", true),
            ("127.0.0.1:8080", "0.0.0.0:8081", false),
            ("127.0.0.1:8080", "[::]:8080", true),
            ("127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", true),
            ("0.0.0.0:8080", "[::]:8080", true),
            ("0.0.0.0:8080", "[::1]:8080", false),
            ("[::]:8080", "[::1]:8080", true),
            ("0.0.0.0:0", "0.0.0.0:0", false),
        ] {
            let (a, b) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(overlap(a, b), overlaps, "{one} {other}");
            assert_eq!(overlap(b, a), overlaps, "{other} {one}");
        }
    }

    /// J9: every invalid value has its error.
    #[test]
    fn all_errors_are_found() {
        let lines = "listen = \"0.0.0.0:9900\"\nallowed_hosts = []\nmetrics_token = { env = \"NO_SUCH_TOKEN\" }";
        let error = plan_of(lines, "hunter2").err().unwrap();
        for part in [
            "[admin.tls]",
            "is on all addresses",
            "admin.token: ",
            "admin.metrics_token: ",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let lines = "listen = \"127.0.0.1:9900\"\nallowed_hosts = [\"a b\", \"c d\"]\n[admin.tls]\ncertificates = \"/c\"\nkey = \"/k\"";
        let error = plan_of(lines, TOKEN).err().unwrap();
        for part in [
            "a b",
            "c d",
            "admin.tls.certificates = ",
            "admin.tls.key = ",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    /// J2, J6: the token comes from the environment or a file, is long enough for a secret, and is
    /// not in the error.
    #[test]
    fn tokens_are_checked() {
        for lines in [
            "",
            "token = { file = \"token\" }",
            "token = { env = \"PORTCULLIS_ADMIN_TOKEN\" }",
        ] {
            let lines = format!("listen = \"127.0.0.1:9900\"\n{lines}");
            let plan = plan_of(&lines, &format!("{TOKEN}\n")).unwrap().unwrap();
            assert_eq!(plan.token, Secret::new(TOKEN));
            let too_long = "x".repeat(1025);
            let with_blank = format!("{TOKEN} hunter2");
            for bad in [
                "hunter2",
                &TOKEN[1..],
                &with_blank,
                &too_long,
                "",
                "hunter2hunter2hunter2hunter2hunterü",
            ] {
                let error = plan_of(&lines, bad).err().unwrap();
                assert!(
                    error.contains("admin.token") && error.contains("openssl rand"),
                    "{error}"
                );
                assert!(
                    !error.contains("hunter2") && !error.contains("1234") && !error.contains("xxx"),
                    "{error}"
                );
            }
        }
        let marked = plan_of("listen = \"127.0.0.1:9900\"", &format!("\u{feff}{TOKEN}"));
        let error = marked.err().unwrap();
        assert!(
            error.contains("admin.token") && error.contains("byte order mark (U+FEFF)"),
            "{error}"
        );
        let error = plan_of(
            "listen = \"127.0.0.1:9900\"\nmetrics_token = { file = \"token\" }",
            TOKEN,
        )
        .err()
        .unwrap();
        assert!(error.contains("the same as admin.token"), "{error}");
        let error = plan_of(
            "listen = \"127.0.0.1:9900\"\ntoken = { env = \"NO_SUCH_TOKEN\" }",
            TOKEN,
        )
        .err()
        .unwrap();
        assert!(error.contains("NO_SUCH_TOKEN is not set"), "{error}");
    }
}
