//! `portcullis client-document URL`: the client ID metadata document for `--client-metadata-url`.

use anyhow::Context as _;
use portcullis_client::{
    AuthorizerSettings, LoopbackRedirect, registration::client_id_metadata_document,
};
use portcullis_metadata::client::ClientIdUrl;
use portcullis_terminal::print_json;
use serde_json::Value;
use url::Url;

pub(crate) fn run(url: &str) -> anyhow::Result<()> {
    let url = ClientIdUrl::parse(url)
        .with_context(|| format!("{url:?} cannot be a client identifier"))?;
    let redirect_uri = Url::parse(LoopbackRedirect::ANY_PORT)?;
    let document = client_id_metadata_document(
        url,
        &AuthorizerSettings::default().client_name,
        [&redirect_uri],
    );
    let document: Value = serde_json::from_slice(&document.to_json())?;
    Ok(print_json(&document)?)
}
