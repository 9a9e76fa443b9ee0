use std::{
    fs,
    net::{SocketAddr, TcpListener},
};

use anyhow::Context as _;

use xtask::workspace;

/// The addresses of a run.
///
/// The files of `tests/idp/keycloak` contain the addresses of the guide. A run replaces them with
/// its own.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    /// The address of Portcullis for clients.
    pub(super) portcullis: SocketAddr,
    pub(super) keycloak: SocketAddr,
    /// Keycloak's health endpoint.
    pub(super) management: SocketAddr,
    /// The MCP server behind Portcullis, if it is not the demo.
    pub(super) upstream: SocketAddr,
    /// The proxy that removes non-standard members of introspection responses.
    pub(super) introspection: SocketAddr,
}

impl Addresses {
    /// Returns free addresses.
    pub(super) fn choose() -> anyhow::Result<Self> {
        // All listeners are open at the same time, so their ports differ.
        let listeners: Vec<_> = (0..5)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<Result<_, _>>()?;
        let address = |which: usize| listeners[which].local_addr();
        Ok(Self {
            portcullis: address(0)?,
            keycloak: address(1)?,
            management: address(2)?,
            upstream: address(3)?,
            introspection: address(4)?,
        })
    }

    /// Returns a text with the addresses of this run.
    pub(super) fn replace_in(self, text: &str) -> String {
        let ports = [("18080", self.keycloak), ("19000", self.management)]
            .map(|(port, to)| (port, to.port().to_string()));
        let addresses = [
            ("127.0.0.1:3000", self.portcullis),
            ("127.0.0.1:8000", self.upstream),
            ("127.0.0.1:8001", self.introspection),
        ];
        let addresses = addresses.map(|(address, to)| (address, to.to_string()));
        ports
            .iter()
            .chain(&addresses)
            .fold(text.to_owned(), |text, (written, here)| {
                text.replace(written, here)
            })
    }

    /// Returns a file of `tests/idp/keycloak` with the addresses of this run.
    pub(super) fn file(self, name: &str) -> anyhow::Result<String> {
        let path = workspace::root().join("tests/idp/keycloak").join(name);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(self.replace_in(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_replaced() {
        let addresses = Addresses::choose().unwrap();
        let text = addresses.replace_in(
            "127.0.0.1:3000 127.0.0.1:18080 --port=19000 127.0.0.1:8000 127.0.0.1:3999",
        );
        let Addresses {
            portcullis,
            keycloak,
            management,
            upstream,
            ..
        } = addresses;
        assert_eq!(
            text,
            format!(
                "{portcullis} {keycloak} --port={} {upstream} 127.0.0.1:3999",
                management.port()
            )
        );
    }
}
