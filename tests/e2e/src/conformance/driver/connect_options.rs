//! The options of `connect` for the credentials that a scenario gives.

use std::{env, fs};

use portcullis_scenarios::Scratch;
use serde_json::Value;

use super::credentials::{DOCUMENT, is_machine};

/// Returns the options that a person would choose. A machine without a secret has a command that
/// obtains its tokens.
pub(super) fn options(url: &str, context: &Value, folder: &Scratch) -> anyhow::Result<Vec<String>> {
    let text = |name: &str| context[name].as_str();
    if ["private_key_pem", "valid_jwt", "idp_id_token"]
        .into_iter()
        .any(|name| text(name).is_some())
    {
        let this = env::current_exe()?;
        return Ok(vec![
            "--token-command".to_owned(),
            format!("'{}' conformance token '{url}'", this.display()),
        ]);
    }
    let mut options = Vec::new();
    match (text("client_id"), text("client_secret")) {
        (Some(client_id), Some(secret)) => {
            let file = folder.path().join("client-secret");
            fs::write(&file, secret)?;
            let file = file.display().to_string();
            options.extend(
                ["--client-id", client_id, "--client-secret-file", &file].map(str::to_owned),
            );
        }
        (Some(client_id), None) => options.extend(["--client-id", client_id].map(str::to_owned)),
        (None, _) => options.extend(["--client-metadata-url", DOCUMENT].map(str::to_owned)),
    }
    let grant = if is_machine() {
        "--client-credentials"
    } else {
        "--auto-consent"
    };
    options.push(grant.to_owned());
    Ok(options)
}
