#![doc = include_str!("../README.md")]

mod advice;
mod confirmation;
mod doctor_page;
mod doctor_report;
mod error;
mod escaped_json;
mod output;
mod raw_json;
mod report;
mod sent_secrets;

pub use advice::{advice, login_command, network_advice, remedy, shell_word};
pub use confirmation::is_yes;
pub use doctor_page::doctor_page;
pub use doctor_report::{print_chain, print_step, print_summary};
pub use error::CommandError;
pub use output::{
    counted, output_error, print, print_json, print_note, print_raw_json, print_warning, tell,
};
pub use raw_json::RawJson;
pub use report::report;
pub use sent_secrets::{RedactingWriter, log_writer, redact, remove_from_output};
