//! [`Storage`]: where a broker keeps its records.

use portcullis_scenarios::{BrokerServer, BrokerSettings, ProviderKind, Redis};

/// Where a broker keeps its records, and how many processes use them. A state directory has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// A file of one process.
    File,
    /// Redis, for one process.
    Redis,
    /// Redis, for two processes.
    TwoReplicas,
}

/// A running server with its records.
pub(super) struct Stored {
    pub(super) server: BrokerServer,
    pub(super) redis: Option<Redis>,
}

impl Storage {
    /// Starts a server. Returns `None` if Redis is not installed.
    pub(super) async fn start(self) -> Option<Stored> {
        let kind = ProviderKind::Oidc;
        let count = match self {
            Self::File => {
                let server = BrokerServer::start(kind).await;
                return Some(Stored {
                    server,
                    redis: None,
                });
            }
            Self::Redis => 1,
            Self::TwoReplicas => 2,
        };
        let redis = Redis::start_durable().await?;
        let server = BrokerServer::replicated(BrokerSettings::of(kind), &redis, count).await;
        Some(Stored {
            server,
            redis: Some(redis),
        })
    }
}
