use std::{env, path::PathBuf};

/// Returns the directory for the state of this user: `portcullis` in `$XDG_STATE_HOME`, else in
/// `~/.local/state`, else in `%LOCALAPPDATA%`. `None` if the environment names none of them with an
/// absolute path. It creates nothing.
///
/// Source: XDG Base Directory Specification.
pub fn user_state_directory() -> Option<PathBuf> {
    let named = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    named("XDG_STATE_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".local/state")))
        .or_else(|| named("LOCALAPPDATA"))
        .map(|directory| directory.join("portcullis"))
}
