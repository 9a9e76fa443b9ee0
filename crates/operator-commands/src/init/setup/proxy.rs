//! The answers about a proxy in front of this server.

use std::net::{SocketAddr, TcpListener};

use anyhow::anyhow;

use super::{Question, Setup};
use crate::{init::values::Values, online_check};

/// The ports that are tried behind a proxy if the first ones are in use.
const MAX_PORTS: usize = 10;

impl Setup<'_> {
    /// Asks for the proxies of an https base URL, if there is a terminal. Without one, the file has
    /// their setting in a comment.
    pub(super) fn ask_proxies(&mut self) -> anyhow::Result<()> {
        let values = self.answers.values();
        let listen = values.listen.ip();
        let is_known = !values.trusted_proxies.is_empty() || !values.is_https();
        if is_known || self.questions.is_none() || !listen.is_loopback() {
            return Ok(());
        }
        let question = Question {
            text: "Address of the proxy in front, which terminates TLS and reports clients' addresses, or none",
            option: "--trusted-proxy",
            given: None,
            default: Some(listen.to_string()),
            is_optional: false,
        };
        let set =
            |setup: &mut Self, text: &str| Ok(setup.answers.set_trusted_proxies(&proxies(text))?);
        self.answer(question, set, |_| Ok(0))
    }

    /// Tests the listener. If a program has the port of an http base URL, asks whether it is a
    /// proxy in front, and then listens on another port.
    pub(super) fn test_listener(&mut self) -> anyhow::Result<usize> {
        let problems = self.test(online_check::Part::Listener)?;
        let values = self.answers.values();
        let listen = values.listen;
        if problems == 0 || values.is_https() || self.arguments.listen.is_some() {
            return Ok(problems);
        }
        let first = SocketAddr::new(listen.ip(), Values::PORT);
        let Some(port) = free_port(first) else {
            return Ok(problems);
        };
        if !self.is_confirmed(&format!(
            "Is the program on {listen} a proxy in front of this server? This server then listens on port {port}."
        ))? {
            return Ok(problems);
        }
        self.answers.set_port(port);
        if self.arguments.trusted_proxies.is_empty() {
            let proxy = listen.ip().to_string();
            self.answers
                .set_trusted_proxies(&[proxy])
                .map_err(|error| anyhow!(error))?;
        }
        self.test(online_check::Part::Listener)
    }
}

/// Returns the first free port from that of an address on.
pub(super) fn free_port(from: SocketAddr) -> Option<u16> {
    let is_free = |port: &u16| TcpListener::bind((from.ip(), *port)).is_ok();
    (from.port()..=u16::MAX).take(MAX_PORTS).find(is_free)
}

/// Returns the addresses of an answer, which spaces or commas separate.
fn proxies(text: &str) -> Vec<String> {
    let is_separator = |c: char| c.is_whitespace() || c == ',';
    let addresses = text
        .split(is_separator)
        .filter(|address| !address.is_empty());
    addresses
        .filter(|address| !address.eq_ignore_ascii_case("none"))
        .map(str::to_owned)
        .collect()
}
