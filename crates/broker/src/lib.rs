#![doc = include_str!("../README.md")]

mod settings;

pub use settings::{
    BrokerProvider, BrokerResource, BrokerSettings, ClientSettings, IntrospectionClient, Lifetimes,
    Logo, PageSettings, ScopeGrant,
};
