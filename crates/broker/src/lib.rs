#![doc = include_str!("../README.md")]

mod keys;
mod pages;
mod sealed;
mod settings;

pub use keys::{BrokerKeys, KeysError};
pub use settings::{
    BrokerProvider, BrokerResource, BrokerSettings, ClientSettings, IntrospectionClient, Lifetimes,
    Logo, PageSettings, ScopeGrant,
};
