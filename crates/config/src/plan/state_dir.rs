//! The directory of the state that outlives the process.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use portcullis_files::user_state_directory;
use portcullis_metadata::syntax::hexadecimal;
use sha2::{Digest as _, Sha256};
use url::Url;

/// The value that keeps everything in memory.
const OFF: &str = "off";
/// The directories that systemd has created for the unit's `StateDirectory=`, separated by colons.
const SYSTEMD_VARIABLE: &str = "STATE_DIRECTORY";

/// Returns the configured directory, else the first one of systemd, else one of the user for this
/// server. `None` if everything is kept in memory, by configuration or because the user has no such
/// directory. Fails when the configured directory is empty.
pub(super) fn plan(configured: Option<&Path>, base_url: &Url) -> anyhow::Result<Option<PathBuf>> {
    if let Some(directory) = configured {
        ensure!(
            !directory.as_os_str().is_empty(),
            "state_dir is empty; name a directory, or \"{OFF}\" to keep everything in memory"
        );
        return Ok((directory != Path::new(OFF)).then(|| directory.to_owned()));
    }
    let of_systemd = env::var_os(SYSTEMD_VARIABLE).unwrap_or_default();
    if let Some(directory) = env::split_paths(&of_systemd).find(|path| !path.as_os_str().is_empty())
    {
        return Ok(Some(directory));
    }
    Ok(user_state_directory()
        .map(|directory| directory.join("server").join(name_of_server(base_url))))
}

/// Returns the name of what a server keeps: servers with different URLs do not share their state.
pub(super) fn name_of_server(base_url: &Url) -> String {
    hexadecimal(&Sha256::digest(base_url.as_str())[..8])
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
mod tests {
    use figment::Jail;

    use super::*;

    /// E12: the configured directory comes first, then that of systemd, then one of the user for
    /// this URL.
    #[test]
    fn the_directory_follows_from_configuration_and_environment() {
        Jail::expect_with(|jail| {
            jail.clear_env();
            let plan = |configured: Option<&str>, base_url: &str| {
                plan(configured.map(Path::new), &Url::parse(base_url).unwrap()).unwrap()
            };
            let url = "https://mcp.example.com";
            assert_eq!(plan(None, url), None);
            jail.set_env("HOME", "/home/a");
            let of_user = plan(None, url).unwrap();
            assert_eq!(
                of_user,
                Path::new("/home/a/.local/state/portcullis/server/604c32496e7129bf")
            );
            assert_ne!(plan(None, "https://other.example.com").unwrap(), of_user);
            jail.set_env("XDG_STATE_HOME", "/state");
            assert!(
                plan(None, url)
                    .unwrap()
                    .starts_with("/state/portcullis/server")
            );
            jail.set_env(SYSTEMD_VARIABLE, "/var/lib/portcullis:/var/lib/other");
            assert_eq!(
                plan(None, url).as_deref(),
                Some(Path::new("/var/lib/portcullis"))
            );
            jail.set_env(SYSTEMD_VARIABLE, ":/var/lib/other");
            assert_eq!(
                plan(None, url).as_deref(),
                Some(Path::new("/var/lib/other"))
            );
            assert_eq!(
                plan(Some("/configured"), url).as_deref(),
                Some(Path::new("/configured"))
            );
            assert_eq!(plan(Some(OFF), url), None);
            Ok(())
        });
        let base_url = Url::parse("https://mcp.example.com").unwrap();
        assert!(
            plan(Some(Path::new("")), &base_url)
                .unwrap_err()
                .to_string()
                .contains("state_dir is empty")
        );
    }
}
