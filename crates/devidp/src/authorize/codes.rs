use std::time::Duration;

use portcullis_authorization_server::{
    AuthorizationCode, Grant, RandomError, RefreshRequest, authorization::AuthorizationRequest,
};
use portcullis_metadata::Secret;

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

struct IssuedCode {
    handle: Handle,
    code: AuthorizationCode,
    is_used: bool,
}

/// What became of a presented code.
pub(crate) enum PresentedCode {
    /// It was used now.
    Redeemed(AuthorizationCode),
    /// It was used before. The session of its grant must end (RFC 6749 section 4.1.2).
    Used(Grant),
    /// It was never issued or has expired.
    Unknown,
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

    pub(crate) fn issue(&self, code: AuthorizationCode) -> Result<Secret, RandomError> {
        let handle = Handle::generate()?;
        let issued = IssuedCode {
            handle: handle.clone(),
            code,
            is_used: false,
        };
        self.codes.insert(handle.id(), issued);
        Ok(Secret::new(handle.as_str()))
    }

    /// Redeems a code. A code can be redeemed once, even if the token request fails afterwards (RFC
    /// 6749 section 10.5). It is remembered until it expires, so a second use is detected.
    pub(crate) fn redeem(&self, code: &str) -> PresentedCode {
        let Some(presented) = Handle::parse(code) else {
            return PresentedCode::Unknown;
        };
        let redeemed = self.codes.update(presented.id(), |issued| {
            let result = if !presented.matches(&issued.handle) {
                PresentedCode::Unknown
            } else if issued.is_used {
                PresentedCode::Used(issued.code.grant.clone())
            } else {
                issued.is_used = true;
                PresentedCode::Redeemed(issued.code.clone())
            };
            (result, RowAction::Keep)
        });
        redeemed.unwrap_or(PresentedCode::Unknown)
    }

    pub(crate) fn remove_user(&self, subject: &str) {
        self.codes
            .remove_if(|issued| *issued.code.grant.subject == *subject);
    }

    pub(crate) fn remove_client(&self, client_id: &str) {
        self.codes
            .remove_if(|issued| *issued.code.grant.client_id == *client_id);
    }
}
