//! [`ConsentTickets`]: the displayed consent pages that are not answered yet.

use std::{sync::Arc, time::Duration};

use portcullis_authorization_server::authorization::AuthorizationRequest;
use portcullis_metadata::Secret;

use crate::{
    config::Config,
    device::user_code::UserCode,
    handle::Handle,
    tables::{EVICTING_CAPACITY, RowAction, Table},
};

/// The tickets of consent pages. A ticket can be redeemed once, and only in the browser to which
/// its page was sent.
pub(crate) struct ConsentTickets(Table<PendingConsent>);

struct PendingConsent {
    ticket: Handle,
    /// The consent cookie of the browser.
    browser: Secret,
    question: Question,
}

/// What the user is asked to approve.
#[derive(Clone)]
pub(crate) enum Question {
    /// An authorization request.
    Request(Arc<AuthorizationRequest>),
    /// The device authorization with this user code.
    Device(UserCode),
}

/// The time in which a consent page can be answered.
pub(super) const TICKET_LIFETIME: Duration = Duration::from_secs(600);

impl ConsentTickets {
    pub(crate) fn new(config: &Config) -> Self {
        Self(config.table(EVICTING_CAPACITY, TICKET_LIFETIME))
    }

    /// Stores a ticket.
    pub(super) fn insert(&self, ticket: &Handle, browser: Secret, question: Question) {
        self.0.insert(
            ticket.id(),
            PendingConsent {
                ticket: ticket.clone(),
                browser,
                question,
            },
        );
    }

    /// Returns the question of a ticket if the ticket belongs to this browser. The ticket is
    /// removed.
    pub(super) fn redeem(&self, presented: &Handle, browser: &Secret) -> Option<Question> {
        self.0.update(presented.id(), |pending| {
            if presented.matches(&pending.ticket) && *browser == pending.browser {
                (Some(pending.question.clone()), RowAction::Remove)
            } else {
                (None, RowAction::Keep)
            }
        })?
    }
}
