//! Secrets of clients with more than the secret in their source.

use super::secret_files;
use crate::Config;

/// Returns a warning for each secret of a client with a line end inside. A secret has visible
/// characters and spaces (RFC 6749, appendix A.2): the line end was sent as a part of it.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let of_clients = secret_files::secrets(config)
        .into_iter()
        .filter(|(key, _)| key.ends_with(".client_secret"));
    of_clients
        .filter_map(|(key, source)| {
            let secret = source.read().ok()?;
            secret.secret().contains(['\n', '\r']).then(|| {
                format!("{key}: {source} has a line break inside, which is sent as a part of the secret; write only the secret there")
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::from_text;

    /// J9: a secret of two lines is named and not printed.
    #[test]
    fn secrets_have_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        let text = format!(
            "base_url = \"https://mcp.example.com\"\n[[issuer]]\nissuer = \"https://a.example\"\n\
             client_secret = {{ file = {:?} }}\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"",
            file.display()
        );
        let config = from_text(&text).unwrap();
        for text in ["hunter2\nx\n", "hunter2\n\n", "hunter2\rx"] {
            fs::write(&file, text).unwrap();
            let found = warnings(&config);
            assert_eq!(found.len(), 1, "{found:#?}");
            assert!(found[0].starts_with("issuer[0].client_secret: the file "));
            assert!(found[0].contains("; write only the secret there"));
            assert!(!found[0].contains("hunter2"), "{found:#?}");
        }
        for text in ["hunter2", "hunter2\n", "hunter2\r\n", "hunter 2"] {
            fs::write(&file, text).unwrap();
            assert_eq!(warnings(&config), Vec::<String>::new());
        }
    }
}
