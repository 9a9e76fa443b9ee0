#![doc = include_str!("../README.md")]

mod changes;
mod check;
pub mod container;
mod diagnostic;
pub mod file;
mod file_error;
mod invisible;
mod key_path;
mod listen_address;
mod load;
mod located;
mod origin;
mod placeholders;
pub mod plan;
mod restart;
mod schema;
mod secret;
mod shown_url;
mod similar;
mod size;
mod span;
mod syntax;
mod toml_file;
mod toml_lines;
mod toml_text;
mod type_errors;
mod type_names;
#[cfg(feature = "dev")]
mod values_file;
mod variables;
mod without_dev;

pub use changes::{Change, changes};
pub use check::check;
pub use diagnostic::Diagnostic;
pub use file::Config;
pub use file_error::FileError;
pub use key_path::{KeyPath, Segment};
pub use listen_address::{parse as parse_listen_address, reachable as reachable_address};
pub use load::{Loaded, Overrides, Unusable, from_text, load};
pub use located::{ConfigErrors, Located, Places};
pub use origin::{Effective, EffectiveError, effective};
pub use restart::changes_that_need_restart;
pub use schema::schema;
pub use secret::{SecretError, SecretSource};
pub use shown_url::shown_url;
pub use similar::nearest;
pub use span::Span;
#[cfg(feature = "dev")]
pub use values_file::parse_values;
pub use without_dev::without_dev;

use diagnostic::Diagnostics;
use schema::is_known;
use toml_file::TomlFile;
use toml_lines::TomlLines;
