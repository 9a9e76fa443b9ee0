//! The way of a user: consent, the provider, and back to the client.

mod form;
mod request;
mod transaction;

pub(crate) use self::{
    form::{ConsentForm, TransactionSecrets},
    request::PendingRequest,
    transaction::{LIFETIME, Transaction, TransactionError, cookie_name},
};
