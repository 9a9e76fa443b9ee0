//! [`Traffic`]: the requests of a case, one after the other on one connection.

use std::net::SocketAddr;

use anyhow::ensure;
use bytes::Bytes;
use http::Request;

use super::{
    case::Case,
    http2::Http2,
    requests::{call_without_token, http2_call, listen, stateless_call},
    stream::EventStream,
    upstream::Upstream,
};
use crate::{
    http::Connection,
    issuer::BenchIssuer,
    portcullis::{self, CALL, tool_call},
};

/// An open connection, and what is sent on it.
pub(super) enum Traffic<'a> {
    /// The same request again and again.
    Repeated {
        connection: Connection,
        request: Vec<u8>,
        status: u16,
    },
    /// A call with another token each time.
    NewTokens {
        connection: Connection,
        issuer: &'a BenchIssuer,
        session: String,
        sent: u32,
    },
    /// Messages of the upstream.
    Messages {
        stream: EventStream,
        upstream: &'a Upstream,
    },
    /// The same request on streams of their own.
    Http2 {
        connection: Http2,
        request: Request<()>,
    },
}

impl<'a> Traffic<'a> {
    /// Opens a session and the connection of a case.
    pub(super) async fn open(
        case: Case,
        address: SocketAddr,
        issuer: &'a BenchIssuer,
        upstream: &'a Upstream,
    ) -> anyhow::Result<Self> {
        let token = issuer.sign(None);
        let session = portcullis::open_session(address, &token).await?;
        let repeated = async |request, status| {
            anyhow::Ok(Self::Repeated {
                connection: Connection::open(address).await?,
                request,
                status,
            })
        };
        match case {
            Case::CachedPost | Case::AuditedPost => {
                repeated(tool_call(&token, &session), 200).await
            }
            Case::Stateless => repeated(stateless_call(&token), 200).await,
            Case::Refused => repeated(call_without_token(), 401).await,
            Case::UncachedEs256 | Case::UncachedRs256 => {
                let connection = Connection::open(address).await?;
                Ok(Self::NewTokens {
                    connection,
                    issuer,
                    session,
                    sent: 0,
                })
            }
            Case::StreamMessage => {
                let stream = EventStream::open(address, &listen(&token, &session)).await?;
                Ok(Self::Messages { stream, upstream })
            }
            Case::Http2 => {
                let connection = Http2::connect(address).await?;
                Ok(Self::Http2 {
                    connection,
                    request: http2_call(&token, &session)?,
                })
            }
        }
    }

    /// Sends this number of requests, each after the response to the one before it. Fails at the
    /// first response with another status than the case has.
    pub(super) async fn send(&mut self, requests: u32) -> anyhow::Result<()> {
        for _ in 0..requests {
            let (status, expected) = match self {
                Self::Repeated {
                    connection,
                    request,
                    status,
                } => (connection.send(request).await?.status, *status),
                Self::NewTokens {
                    connection,
                    issuer,
                    session,
                    sent,
                } => {
                    // Signing does not delay the server: it is idle meanwhile.
                    let request = tool_call(&issuer.sign(Some(*sent)), session);
                    *sent += 1;
                    (connection.send(&request).await?.status, 200)
                }
                Self::Messages { stream, upstream } => {
                    upstream.send_event();
                    stream.receive().await?;
                    continue;
                }
                Self::Http2 {
                    connection,
                    request,
                } => (
                    connection
                        .send(request.clone(), Bytes::from_static(CALL.as_bytes()))
                        .await?,
                    200,
                ),
            };
            ensure!(status == expected, "a response is {status}, not {expected}");
        }
        Ok(())
    }
}
