//! [`DeviceAuthorizations`]: the started device authorizations.

use std::{sync::Arc, time::Duration};

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, RandomError, client::Client, random_secret,
};
use portcullis_metadata::{Clock, Scopes, UnixTime};

use crate::{
    config::Config,
    device::user_code::UserCode,
    handle::Handle,
    tables::{EVICTING_CAPACITY, RowAction, Table},
};

/// The device authorizations, by device code and by user code.
pub(crate) struct DeviceAuthorizations {
    /// The device authorizations, by the first half of the device code.
    authorizations: Table<DeviceAuthorization>,
    /// The key in `authorizations`, by user code. The entry is removed with the user's answer.
    user_codes: Table<Box<str>>,
    /// The wrong user codes of the last minute, by a random key.
    wrong_user_codes: Table<()>,
    clock: Arc<dyn Clock>,
}

/// What a device requests (RFC 8628 section 3.1).
#[derive(Clone)]
pub(crate) struct DeviceRequest {
    pub(crate) client_id: Box<str>,
    pub(crate) client: Arc<Client>,
    pub(crate) scopes: Scopes,
    pub(crate) audience: Option<Box<str>>,
    /// Whether the client gets a refresh token.
    pub(crate) is_refreshable: bool,
}

/// The user's answer to a device authorization.
#[derive(Clone)]
pub(crate) enum Answer {
    Pending,
    Approved {
        subject: Box<str>,
        auth_time: UnixTime,
    },
    Denied,
}

/// A device authorization that the user approved.
pub(crate) struct ApprovedDevice {
    pub(crate) request: DeviceRequest,
    pub(crate) subject: Box<str>,
    pub(crate) auth_time: UnixTime,
}

struct DeviceAuthorization {
    device_code: Handle,
    request: DeviceRequest,
    answer: Answer,
    /// The monotonic time at which it expires.
    expires_at: Duration,
    /// The minimum time between two polls. Each poll that comes too early adds to it.
    interval: Duration,
    /// The monotonic time of the last poll.
    last_poll: Option<Duration>,
}

/// The time in which a device authorization can be answered and polled.
pub(super) const LIFETIME: Duration = Duration::from_secs(600);
/// The time for which an expired device authorization is remembered, so that a poll learns that it
/// has expired.
const RETENTION: Duration = Duration::from_secs(600);
/// The initial minimum time between two polls (RFC 8628 section 3.2).
pub(super) const INTERVAL: Duration = Duration::from_secs(5);
/// How much longer a client must wait after it polled too early (RFC 8628 section 3.5).
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The maximum time between two polls.
const MAX_INTERVAL: Duration = Duration::from_secs(120);
/// The maximum number of wrong user codes in a minute.
const MAX_WRONG_USER_CODES: usize = 100;
const WRONG_USER_CODE_LIFETIME: Duration = Duration::from_secs(60);

impl DeviceAuthorizations {
    pub(crate) fn new(config: &Config) -> Self {
        let lifetime = LIFETIME.saturating_add(RETENTION);
        Self {
            authorizations: config.table(EVICTING_CAPACITY, lifetime),
            user_codes: config.table(EVICTING_CAPACITY, lifetime),
            wrong_user_codes: config.table(MAX_WRONG_USER_CODES, WRONG_USER_CODE_LIFETIME),
            clock: Arc::clone(&config.settings.clock),
        }
    }

    pub(super) fn start(
        &self,
        device_code: Handle,
        user_code: &UserCode,
        request: DeviceRequest,
        answer: Answer,
    ) {
        let id: Box<str> = device_code.id().into();
        let authorization = DeviceAuthorization {
            device_code,
            request,
            answer,
            expires_at: self.clock.monotonic().saturating_add(LIFETIME),
            interval: INTERVAL,
            last_poll: None,
        };
        self.authorizations.insert(&id, authorization);
        self.user_codes.insert(user_code.as_key(), id);
    }

    /// Returns the request with a user code if it is not answered yet and has not expired.
    pub(super) fn find_pending(&self, user_code: &UserCode) -> Option<DeviceRequest> {
        self.update_pending(user_code, |authorization| authorization.request.clone())
    }

    /// Stores the user's answer and returns the client identifier. Returns `None` if no device
    /// authorization with this user code waits for an answer.
    pub(super) fn answer(&self, user_code: &UserCode, answer: Answer) -> Option<Box<str>> {
        let client_id = self.update_pending(user_code, |authorization| {
            authorization.answer = answer;
            authorization.request.client_id.clone()
        })?;
        self.user_codes.remove(user_code.as_key());
        Some(client_id)
    }

    /// Polls with a device code (RFC 8628 section 3.4). An approved device authorization is
    /// returned once.
    pub(crate) fn poll(
        &self,
        device_code: &Handle,
        client_id: &str,
    ) -> Result<ApprovedDevice, ErrorResponse> {
        let unknown = ErrorResponse::new(
            ErrorCode::InvalidGrant,
            "the device code is unknown, expired or used",
        );
        let now = self.clock.monotonic();
        let polled = self
            .authorizations
            .update(device_code.id(), |authorization| {
                if !device_code.matches(&authorization.device_code)
                    || *authorization.request.client_id != *client_id
                {
                    return (Err(unknown), RowAction::Keep);
                }
                if let Err(error) = authorization.check_poll(now) {
                    return (Err(error), RowAction::Keep);
                }
                match &authorization.answer {
                    Answer::Pending => {
                        let description = "the user has not answered yet";
                        (
                            Err(ErrorResponse::new(
                                ErrorCode::AuthorizationPending,
                                description,
                            )),
                            RowAction::Keep,
                        )
                    }
                    Answer::Denied => {
                        let description = "the user denied the request";
                        (
                            Err(ErrorResponse::new(ErrorCode::AccessDenied, description)),
                            RowAction::Remove,
                        )
                    }
                    Answer::Approved { subject, auth_time } => {
                        let request = authorization.request.clone();
                        let approved = ApprovedDevice {
                            request,
                            subject: subject.clone(),
                            auth_time: *auth_time,
                        };
                        (Ok(approved), RowAction::Remove)
                    }
                }
            });
        polled.unwrap_or(Err(unknown))
    }

    pub(crate) fn remove_client(&self, client_id: &str) {
        self.authorizations
            .remove_if(|authorization| *authorization.request.client_id == *client_id);
    }

    /// Counts a wrong user code.
    pub(super) fn count_wrong_user_code(&self) -> Result<(), RandomError> {
        // If the table is full, `has_too_many_wrong_user_codes` is true already.
        let _ = self
            .wrong_user_codes
            .insert_new(random_secret(16)?.secret(), ());
        Ok(())
    }

    /// Returns whether [`MAX_WRONG_USER_CODES`] user codes were wrong in the last minute.
    pub(super) fn has_too_many_wrong_user_codes(&self) -> bool {
        self.wrong_user_codes.is_full()
    }

    fn update_pending<R>(
        &self,
        user_code: &UserCode,
        f: impl FnOnce(&mut DeviceAuthorization) -> R,
    ) -> Option<R> {
        let id = self.user_codes.read(user_code.as_key(), Box::clone)?;
        let now = self.clock.monotonic();
        self.authorizations.update(&id, |authorization| {
            let is_pending =
                matches!(authorization.answer, Answer::Pending) && now < authorization.expires_at;
            (is_pending.then(|| f(authorization)), RowAction::Keep)
        })?
    }
}

impl DeviceAuthorization {
    /// Checks the lifetime and the time since the last poll.
    fn check_poll(&mut self, now: Duration) -> Result<(), ErrorResponse> {
        if self.expires_at <= now {
            return Err(ErrorResponse::new(
                ErrorCode::ExpiredToken,
                "the device code has expired",
            ));
        }
        let last_poll = self.last_poll.replace(now);
        if last_poll.is_some_and(|last_poll| now.saturating_sub(last_poll) < self.interval) {
            self.interval = self.interval.saturating_add(SLOW_DOWN).min(MAX_INTERVAL);
            let description =
                "the client polls too often: each such poll adds 5 seconds to the interval";
            return Err(ErrorResponse::new(ErrorCode::SlowDown, description));
        }
        Ok(())
    }
}
