//! Attacks, one per file. The tests check the response, the log, and that no request reached the
//! upstream.
#![allow(
    clippy::unwrap_used,
    reason = "a scenario fails where something is missing"
)]

mod administration;
mod administration_tls;
mod application_audience;
mod bad_utf8;
mod batch;
mod browser_command_line;
mod browser_windows;
mod client_of_other_server;
mod content_type_parameters;
mod deep_json;
mod dropped_tokens;
mod duplicate_members;
mod era_confusion;
mod expanding_responses;
mod exposed_secret_files;
mod folded_members;
mod foreign_configuration;
mod foreign_session;
mod header_injection;
mod hostile_metadata;
mod introspected_token_use;
mod late_bytes;
mod loopback_documents;
mod named_addresses;
mod names_elsewhere;
mod origin_and_host;
mod oversized;
mod path_confusion;
mod rate_limits;
mod repeated_secrets;
mod resource_aliases;
mod sealed_identifiers;
mod sending_client;
mod session_fixation;
mod slow_bodies;
mod smuggling;
mod spoofed_identity;
mod stored_token;
mod terminal_text;
mod terminal_text_of_peers;
mod token_in_query;
mod tokens;
mod two_authorization_headers;
mod unbound_token;
mod unsigned_upstream;
mod upstream_address;
