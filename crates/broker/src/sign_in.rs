//! The way of a user: consent, the provider, and back to the client.

mod consent_memory;
mod form;
mod request;
mod transaction;

pub(crate) use self::{
    consent_memory::RememberedConsent,
    form::{ConsentForm, TransactionSecrets},
    request::PendingRequest,
    transaction::{LIFETIME, Memory, Transaction, TransactionError, cookie_name, surplus_cookies},
};
