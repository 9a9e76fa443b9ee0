mod login_command;
mod network;
mod remedy;

use std::error::Error;

pub use self::{
    login_command::{login_command, shell_word},
    network::network_advice,
    remedy::remedy,
};

/// Returns what a user can do about an error, for the end of its text. It begins with its own
/// punctuation, and is empty if the text already says everything.
pub fn advice(error: &(dyn Error + 'static)) -> String {
    let mut text = remedy(error);
    if let Some(advice) = network_advice(error) {
        text.push_str("; ");
        text.push_str(advice);
    }
    text
}
