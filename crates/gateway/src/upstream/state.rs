//! [`UpstreamState`]: the state of an upstream, and how a request gets a connection.

use std::{sync::Arc, time::Duration};

use http::Response;
use portcullis_http1::{Request, SendError};
use portcullis_metadata::{Clock, ResourceUri};
use tokio::time::timeout;

use super::deadlines::Deadlines;
use crate::{
    address::Target,
    connection::{Connection, ConnectionLimit, Pool, Stream},
    error::UpstreamSettingsError,
    request::{ForwardingRules, ForwardingSettings},
    response::{self, UpstreamBody, UpstreamFailure},
    settings::HttpUpstreamSettings,
};

/// The state that all clones of an upstream share.
pub(super) struct UpstreamState {
    pub(super) resource: Option<ResourceUri>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) target: Target,
    pub(super) rules: ForwardingRules,
    forward_cookies: bool,
    connect_timeout: Duration,
    pub(super) head_deadlines: Deadlines,
    connection_limit: ConnectionLimit,
    pub(super) pool: Arc<Pool>,
}

impl UpstreamState {
    /// Checks the settings and prepares the state. No connection is made. Fails as
    /// [`HttpUpstream::new`](crate::HttpUpstream::new) does.
    pub(super) fn new(
        settings: HttpUpstreamSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, UpstreamSettingsError> {
        let HttpUpstreamSettings {
            address,
            resource,
            trust,
            identity_headers,
            forward_headers,
            session_header,
            public_url,
            forward_cookies,
            connect_timeout,
            head_timeout,
            connection_limit,
            max_idle_connections,
            idle_timeout,
        } = settings;
        Ok(Self {
            resource,
            target: Target::new(address, trust)?,
            rules: ForwardingRules::new(ForwardingSettings {
                identity_headers,
                forward_headers,
                session_header: Some(session_header),
                public_url: public_url.as_ref(),
                forward_cookies,
            })?,
            forward_cookies,
            connect_timeout,
            head_deadlines: Deadlines::new(head_timeout),
            pool: Pool::new(
                max_idle_connections,
                idle_timeout,
                Arc::clone(&clock),
                &connection_limit,
            ),
            clock,
            connection_limit,
        })
    }

    /// Sends a request over an idle connection that is still open, or over a new one. A request of
    /// which a byte was written is not sent again, because the upstream may have executed it.
    pub(super) async fn send(
        self: Arc<Self>,
        mut request: Request,
    ) -> Result<Response<UpstreamBody>, UpstreamFailure> {
        while let Some(idle) = self.pool.take(self.clock.monotonic()) {
            match idle.send(request).await {
                Ok((head, connection)) => return self.client_response(head, connection),
                Err(SendError {
                    unsent: Some(unsent),
                    ..
                }) => request = unsent,
                Err(SendError { error, .. }) => return Err(UpstreamFailure::NoResponse(error)),
            }
        }
        match self.connect().await?.send(request).await {
            Ok((head, connection)) => self.client_response(head, connection),
            Err(SendError { error, .. }) => Err(UpstreamFailure::NoResponse(error)),
        }
    }

    /// Returns the response to the client, or the reason why the upstream's response is not
    /// forwarded.
    pub(super) fn client_response(
        &self,
        head: Response<()>,
        connection: Connection,
    ) -> Result<Response<UpstreamBody>, UpstreamFailure> {
        let mut response = head.map(|()| UpstreamBody::over(connection, &self.pool));
        response::check_status(response.status(), response.headers(), &self.target)?;
        response::remove_headers(response.headers_mut(), self.forward_cookies);
        Ok(response)
    }

    /// Opens a connection within the connect timeout, if the connection limit permits one.
    pub(super) async fn connect(&self) -> Result<Connection, UpstreamFailure> {
        let permit = self
            .connection_limit
            .acquire()
            .ok_or(UpstreamFailure::TooManyConnections)?;
        let connecting = timeout(
            self.connect_timeout,
            Stream::connect(&self.target.endpoint, permit),
        );
        let stream = connecting
            .await
            .map_err(|_| UpstreamFailure::ConnectTimeout)??;
        Ok(Connection::new(stream))
    }
}
