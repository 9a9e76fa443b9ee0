#![doc = include_str!("../README.md")]

mod access;
mod access_tokens;
mod broker;
mod clients;
mod cookies;
mod endpoints;
mod ends;
mod grants;
mod keys;
mod limits;
mod observer;
mod pages;
mod policy;
mod problem;
mod reason_codes;
mod recheck;
mod records;
mod rejected_application;
mod sealed;
mod settings;
mod sign_in;
mod store;

pub use broker::{Broker, BrokerError, BrokerParts};
pub use clients::logged_client_id;
pub use cookies::is_broker_cookie;
pub use ends::Ends;
pub use grants::{EndGrantsError, EndedGrants, GrantFilter, GrantPage, GrantSummary};
pub use keys::{BrokerKeys, KeysError};
pub use observer::{BrokerEvent, BrokerObserver, EndReason, GrantOwner};
pub use reason_codes::REASON_CODES;
pub use settings::{
    BrokerProvider, BrokerResource, BrokerSettings, ClientSettings, IntrospectionClient, Lifetimes,
    Logo, PageSettings, ScopeGrant,
};
