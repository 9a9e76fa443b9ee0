//! URLs, queries, media types, digits and patterns, read by one set of rules in all crates, so that
//! no two of them understand an input differently.

mod broker_cookie;
mod encoded_path;
mod hexadecimal;
mod media_type;
mod query;
mod url_without_secrets;
mod wildcard;

pub use crate::identifier::{is_https_or_loopback_http, is_loopback, is_uuid};
pub use broker_cookie::{BROKER_COOKIE_PREFIX, is_broker_cookie};
pub use encoded_path::has_encoded_path_syntax;
pub use hexadecimal::hexadecimal;
pub use media_type::{has_media_type, is_event_stream};
pub use query::{
    QUERY_SEPARATORS, has_access_token_parameter, is_access_token_parameter, query_parameter_name,
};
pub use url_without_secrets::url_without_secrets;
pub use wildcard::Wildcard;
