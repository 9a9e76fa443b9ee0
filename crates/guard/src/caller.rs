use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
};

use portcullis_verifier::{HeldToken, Principal, VerifiedToken};

use crate::{Operation, RequestId};

/// Who calls: the one thing that the guard puts into the extensions of a request that it hands on.
///
/// Only the guard makes it, so that whoever finds one knows that the request was judged. The token cannot be read from
/// it. Clones share what is [reported](Self::record_operation) through them.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    verified: Option<VerifiedToken>,
    held_token: Option<HeldToken>,
    request_id: RequestId,
    client_address: Option<IpAddr>,
    operation: OnceLock<Operation>,
    report_only_denial: OnceLock<&'static str>,
}

impl Caller {
    pub(crate) fn new(
        verified: Option<VerifiedToken>,
        held_token: Option<HeldToken>,
        request_id: RequestId,
        client_address: Option<IpAddr>,
    ) -> Self {
        let (operation, report_only_denial) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Shared { verified, held_token, request_id, client_address, operation, report_only_denial }))
    }

    /// Whom the token speaks for; `None` only where authentication is [off](crate::Authentication::Off) or the path is
    /// [public](crate::GuardSettings::public_paths).
    pub fn principal(&self) -> Option<&Principal> {
        self.verified().map(VerifiedToken::principal)
    }

    /// The evidence that the token was verified; `None` where there is no [principal](Self::principal).
    pub fn verified(&self) -> Option<&VerifiedToken> {
        self.0.verified.as_ref()
    }

    /// The introspected token of this request, for a service that has it checked again while a long answer depends on it.
    /// `None` for a token that is verified by its signature alone, and where authentication is off.
    pub fn held_token(&self) -> Option<&HeldToken> {
        self.0.held_token.as_ref()
    }

    /// The correlation id of this request.
    pub fn request_id(&self) -> &RequestId {
        &self.0.request_id
    }

    /// The client's address, as in [`Decision::client_address`](crate::Decision::client_address): behind a
    /// [trusted proxy](crate::TrustedProxies), the address that the proxy was called from. `None` where the server set no
    /// [`Peer`].
    pub fn client_address(&self) -> Option<IpAddr> {
        self.0.client_address
    }

    /// Tells the guard's [`Decision`](crate::Decision) what the request is about, once whoever stands behind the guard
    /// knows. The first report counts.
    pub fn record_operation(&self, operation: Operation) {
        self.0.operation.get_or_init(|| operation);
    }

    /// Tells the guard's [`Decision`](crate::Decision) that a rule that only reports would have refused the request, and
    /// the code that it would have had. The first report counts.
    pub fn record_report_only_denial(&self, code: &'static str) {
        self.0.report_only_denial.get_or_init(|| code);
    }

    pub(crate) fn operation(&self) -> Option<&Operation> {
        self.0.operation.get()
    }

    pub(crate) fn report_only_denial(&self) -> Option<&'static str> {
        self.0.report_only_denial.get().copied()
    }
}

/// The address of the connection's other end: a request extension that a server sets, for the
/// [`Decision`](crate::Decision).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// The reason code of a refusal that an inner service made: a response extension that the guard takes off and
/// reports in its [`Decision`](crate::Decision). It never reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectionCode(pub &'static str);
