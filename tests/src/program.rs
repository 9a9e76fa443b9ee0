//! The `portcullis` program: building it, and the command that starts it.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use xtask::built;

/// Returns the path of the `portcullis` program. The first call builds it, so that no test runs an
/// outdated one.
///
/// # Panics
/// Panics when it cannot be built.
pub fn portcullis_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let built = built::build(&["--package=portcullis", "--bin=portcullis"]);
        built
            .and_then(|built| built.program("portcullis"))
            .expect("the program builds")
    })
}

/// Variables that change which certificates and proxies a client uses.
const NETWORK_VARIABLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Returns a command for the `portcullis` program without the standard input of this process, its
/// `PORTCULLIS_*` variables, and those that change which certificates and proxies a client uses.
pub fn portcullis_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    for (name, _) in
        env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PORTCULLIS_"))
    {
        command.env_remove(name);
    }
    for name in NETWORK_VARIABLES {
        command.env_remove(name);
    }
    command
}

/// Returns a [`portcullis_command`] with a limit of resources, which is an argument of `ulimit`.
/// Signals of exceeded limits are ignored: a write beyond the limit fails.
pub fn limited_command(limit: &str) -> Command {
    let mut shell = portcullis_command("sh".as_ref());
    let script = format!("trap '' XFSZ && ulimit {limit} && exec \"$0\" \"$@\"");
    shell.args(["-c", &script]).arg(portcullis_program());
    shell
}

/// Returns the listen address of a log line, in either log format.
pub fn listen_address(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line
        .split_once("listening")
        .filter(|_| line.contains("listen.address"))?;
    let (_, address) = rest.split_once("listen.address")?;
    let address = address.trim_start_matches(['"', ':', '=']);
    address.split(['"', ' ']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listen_address_is_read_from_both_log_formats() {
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 4000)));
        let json = r#"{"level":"INFO","message":"listening","listen.address":"127.0.0.1:4000","workers":2}"#;
        assert_eq!(listen_address(json), address);
        assert_eq!(
            listen_address("INFO listening listen.address=127.0.0.1:4000 workers=2"),
            address
        );
        assert_eq!(
            listen_address(r#"{"message":"shutting down","listen.address":"127.0.0.1:4000"}"#),
            None
        );
        assert_eq!(listen_address("listening"), None);
    }
}
