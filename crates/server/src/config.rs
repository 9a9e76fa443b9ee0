//! The configuration: a TOML file, then `PORTCULLIS_*` from the environment, then flags.

mod changes;
mod diagnostic;
mod file;
mod key_path;
mod listen_address;
mod load;
mod located;
mod origin;
mod restart;
mod schema;
mod secret;
mod shown_url;
mod similar;
mod span;
mod syntax;
mod toml_lines;
mod toml_text;
mod type_errors;
mod type_names;
#[cfg(feature = "dev")]
mod values_file;

pub(crate) use changes::{Change, changes};
pub(crate) use diagnostic::{Diagnostic, Diagnostics};
pub(crate) use file::{
    ADMIN_TOKEN_VARIABLE, Admin, AdminListen, Audit, AuditTarget, Authorization, Claim, Config, ForwardedHeader,
    IntrospectionAuth, Issuer, Limits, RateLimit, Reload, Resource, Route, Rule, Session, Sessions, SharedStore, Tls,
    Traces, TracesClient, Upstream, Validation, WithoutState,
};
pub(crate) use key_path::{KeyPath, Segment};
pub(crate) use listen_address::{parse as parse_listen_address, reachable as reachable_address};
pub(crate) use load::{Loaded, Overrides, Unusable, from_text, load};
pub(crate) use located::{ConfigErrors, Located, Places};
pub(crate) use origin::{Effective, effective};
pub(crate) use restart::keep_until_restart;
pub(crate) use schema::{is_known, schema};
pub(crate) use secret::SecretSource;
pub(crate) use shown_url::shown_url;
pub(crate) use similar::nearest;
pub(crate) use span::Span;
pub(crate) use toml_lines::TomlLines;
#[cfg(feature = "dev")]
pub(crate) use values_file::parse_values;
