//! An egress proxy on a machine without DNS, and a certificate of a private authority.

use std::fs;

use portcullis_scenarios::{ConnectProxy, Peer, PrivateAuthority, free_address};
use url::Url;

use super::{
    Environment,
    providers::{accepting_resource, configuration},
    site::{Site, Start},
};
use crate::{
    deployment::{ANNOUNCEMENT, SCOPE},
    program::Program,
    server::{Server, command, serve},
};

const RESOURCE: &str = "https://mcp.corp.test";
const ISSUER: &str = "https://auth.corp.test";

/// Returns a resource and an authorization server with names that only the proxy resolves. It
/// presents certificates of a private authority for them.
pub(super) async fn connect_proxy() -> anyhow::Result<Start> {
    let resource = Peer::start_as(RESOURCE, accepting_resource(ISSUER.to_owned())).await;
    let issuer = Peer::start_as(ISSUER, |_| None).await;
    let hosts = [
        ("mcp.corp.test", resource.address()),
        ("auth.corp.test", issuer.address()),
    ];
    let proxy = ConnectProxy::start(&hosts).await;
    // A browser could not open the page, so the program consents itself.
    let mut site =
        Site::new(Url::parse(&format!("{RESOURCE}/mcp"))?).with_options(["--auto-consent"]);
    site.environment = vec![
        ("HTTPS_PROXY", proxy.url()),
        ("SSL_CERT_FILE", proxy.authority().to_owned()),
    ];
    Ok(Start::ready(site.keeping((resource, issuer, proxy))))
}

/// Returns the development authorization server, and a resource whose certificate only `--ca-file`
/// makes trusted.
pub(super) async fn private_ca(environment: &Environment<'_>) -> anyhow::Result<Start> {
    let Environment {
        program, folder, ..
    } = *environment;
    let mut idp = command(program);
    idp.args(["idp", "--listen", "127.0.0.1:0"]);
    let mut idp = Program::start("idp", &mut idp, folder)?;
    let issuer = idp
        .find_line(|line| line.strip_prefix(ANNOUNCEMENT).map(str::to_owned))
        .await?;

    let authority = PrivateAuthority::new();
    let (certificate, key) = authority.issue("localhost");
    let certificate_file = folder.join("certificate.pem");
    let key_file = folder.join("key.pem");
    fs::write(&certificate_file, certificate.pem())?;
    fs::write(&key_file, key.serialize_pem())?;
    let tls = format!(
        "[tls]\ncertificates = \"{}\"\nkey = \"{}\"\n",
        certificate_file.display(),
        key_file.display()
    );
    let address = free_address()?;
    let configuration = configuration(address, &issuer, "", SCOPE, &tls);
    let server = Server::start(
        "serve",
        &mut serve(program, folder, "serve", &configuration)?,
        folder,
    )
    .await?;
    let url = Url::parse(&format!("https://localhost:{}/mcp", address.port()))?;
    let site = Site::new(url).with_options(["--ca-file", authority.file()]);
    Ok(Start::ready(site.keeping((idp, server, authority))))
}
