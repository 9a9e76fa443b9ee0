//! [`Codes`]: the issued authorization codes.

use std::{sync::Arc, time::Duration};

use portcullis_authorization_server::{
    RandomError, RefreshRequest, authorization::AuthorizationRequest,
};
use portcullis_metadata::UnixTime;

use crate::{
    config::Config,
    handle::Handle,
    providers::profile::RefreshTokenRule,
    tables::{EVICTING_CAPACITY, LASTING_CAPACITY, RowAction, Table},
};

/// The authorization codes, and which clients users approved before.
pub(crate) struct Codes {
    codes: Table<IssuedCode>,
    /// The client and the user of each approval. `None` unless the imitated provider treats the
    /// first one differently.
    approved: Option<Table<()>>,
}

/// A user's approval of an authorization request.
pub(crate) struct Approval {
    pub(crate) request: AuthorizationRequest,
    pub(crate) subject: Box<str>,
    pub(crate) auth_time: UnixTime,
    /// The `sid` of the tokens.
    pub(crate) session_id: Box<str>,
    /// Whether the client gets a refresh token.
    pub(crate) is_refreshable: bool,
}

struct IssuedCode {
    handle: Handle,
    approval: Arc<Approval>,
    is_used: bool,
}

/// Why a code is rejected.
pub(crate) enum CodeError {
    /// The code was never issued or has expired.
    Unknown,
    /// The code was used before. The session of this approval must end (RFC 6749 section 4.1.2).
    Used(Arc<Approval>),
}

/// The lifetime of a code. RFC 6749 section 4.1.2 recommends at most 10 minutes.
pub(crate) const CODE_LIFETIME: Duration = Duration::from_secs(60);

impl Codes {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            codes: config.table(EVICTING_CAPACITY, CODE_LIFETIME),
            approved: matches!(config.profile.refresh_tokens, RefreshTokenRule::AccessType)
                .then(|| config.table(LASTING_CAPACITY, config.settings.refresh_token_lifetime)),
        }
    }

    /// Records that this user approves a request, and returns whether the client gets a refresh
    /// token.
    pub(super) fn record_approval(&self, request: &AuthorizationRequest, subject: &str) -> bool {
        let key = format!("{}\n{subject}", request.client_id);
        // A full table counts as an earlier approval.
        let is_first = self
            .approved
            .as_ref()
            .is_some_and(|approved| approved.insert_new(&key, ()).unwrap_or(false));
        match request.refresh {
            RefreshRequest::No => false,
            RefreshRequest::Yes => true,
            RefreshRequest::FirstApproval => is_first,
        }
    }

    /// Issues a code.
    pub(super) fn issue(&self, approval: Approval) -> Result<Handle, RandomError> {
        let handle = Handle::generate()?;
        let code = IssuedCode {
            handle: handle.clone(),
            approval: Arc::new(approval),
            is_used: false,
        };
        self.codes.insert(handle.id(), code);
        Ok(handle)
    }

    /// Redeems a code. A code can be redeemed once, even if the token request fails afterwards (RFC
    /// 6749 section 10.5). It is remembered until it expires, so a second use is detected.
    pub(crate) fn redeem(&self, code: &str) -> Result<Arc<Approval>, CodeError> {
        let presented = Handle::parse(code).ok_or(CodeError::Unknown)?;
        let redeemed = self.codes.update(presented.id(), |issued| {
            let result = if !presented.matches(&issued.handle) {
                Err(CodeError::Unknown)
            } else if issued.is_used {
                Err(CodeError::Used(Arc::clone(&issued.approval)))
            } else {
                issued.is_used = true;
                Ok(Arc::clone(&issued.approval))
            };
            (result, RowAction::Keep)
        });
        redeemed.unwrap_or(Err(CodeError::Unknown))
    }

    /// Removes the codes of a client.
    pub(crate) fn remove_client(&self, client_id: &str) {
        self.codes
            .remove_if(|issued| *issued.approval.request.client_id == *client_id);
    }
}
