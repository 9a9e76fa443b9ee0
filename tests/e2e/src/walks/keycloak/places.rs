//! Where everything listens, and the texts that name it.
//!
//! The files of this run are written with the addresses of the guide, so that they can be used as they are. A run
//! puts its own in their place.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
};

use anyhow::Context as _;

use xtask::workspace;

/// The addresses of a run.
#[derive(Clone, Copy)]
pub(super) struct Places {
    /// What clients see of Portcullis.
    pub(super) portcullis: SocketAddr,
    pub(super) keycloak: SocketAddr,
    /// Where Keycloak tells of its health.
    pub(super) management: SocketAddr,
    /// The MCP server behind Portcullis, where it is not the one for demonstrations.
    pub(super) upstream: SocketAddr,
    /// Where introspection answers lose what is not standard.
    pub(super) introspection: SocketAddr,
}

impl Places {
    /// Addresses that were free a moment ago.
    pub(super) fn choose() -> anyhow::Result<Self> {
        // Held together, so that they differ.
        let held: Vec<_> = (0..5).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
        let address = |which: usize| held[which].local_addr();
        Ok(Self {
            portcullis: address(0)?,
            keycloak: address(1)?,
            management: address(2)?,
            upstream: address(3)?,
            introspection: address(4)?,
        })
    }

    /// The text with the addresses of this run.
    pub(super) fn put_into(self, text: &str) -> String {
        let ports =
            [("18080", self.keycloak), ("19000", self.management)].map(|(port, to)| (port, to.port().to_string()));
        let addresses = [
            ("127.0.0.1:3000", self.portcullis),
            ("127.0.0.1:8000", self.upstream),
            ("127.0.0.1:8001", self.introspection),
        ];
        let addresses = addresses.map(|(address, to)| (address, to.to_string()));
        ports.iter().chain(&addresses).fold(text.to_owned(), |text, (written, here)| text.replace(written, here))
    }

    /// A file of `tests/idp/keycloak` with the addresses of this run.
    pub(super) fn file(self, name: &str) -> anyhow::Result<String> {
        let path = workspace::root().join("tests/idp/keycloak").join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(self.put_into(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_replaced() {
        let places = Places::choose().unwrap();
        let text = places.put_into("127.0.0.1:3000 127.0.0.1:18080 --port=19000 127.0.0.1:8000 127.0.0.1:3999");
        let Places { portcullis, keycloak, management, upstream, .. } = places;
        assert_eq!(text, format!("{portcullis} {keycloak} --port={} {upstream} 127.0.0.1:3999", management.port()));
    }
}
