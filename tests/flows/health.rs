//! `portcullis health`, the health check of the container image.

use portcullis_scenarios::{Deployment, Finished, Portcullis, ReservedPort, Scratch};
use rcgen::{CertifiedKey, generate_simple_self_signed};

/// Returns a configuration with these lines at the top, whose issuer cannot be reached.
fn configuration(base_url: &str, top: &str) -> String {
    format!(
        r#"
        listen = "127.0.0.1:0"
        base_url = "{base_url}"
        {top}

        [[issuer]]
        issuer = "http://127.0.0.1:9"

        [[resource]]
        endpoint = "/mcp"
        upstream = {{ http = "http://127.0.0.1:9/mcp" }}
        "#
    )
}

/// Runs `portcullis health` for this server, whose address is in the environment.
async fn health(file: &Scratch, portcullis: &Portcullis, more: &[&str]) -> Finished {
    let arguments = [&["health", "--config", file.as_str()], more].concat();
    Portcullis::run_with(
        &arguments,
        &[("PORTCULLIS_LISTEN", &portcullis.address().to_string())],
    )
    .await
}

/// The result is the exit code: 0 for a running server, and 1 when nothing listens.
#[tokio::test]
async fn a_running_server_is_healthy() {
    let Deployment { portcullis, .. } = Deployment::start().await;
    let file = Scratch::file("health.toml", &configuration("http://127.0.0.1:3000", ""));
    let healthy = health(&file, &portcullis, &[]).await;
    assert_eq!(healthy.code, Some(0), "{healthy:?}");
    assert!(
        healthy.stdout.ends_with("/healthz answered 200\n"),
        "{healthy:?}"
    );

    let ready = health(&file, &portcullis, &["--ready"]).await;
    assert_eq!(ready.code, Some(0), "{ready:?}");
    assert!(ready.stdout.contains("/readyz answered 200"), "{ready:?}");

    let closed = ReservedPort::new();
    let address = closed.address().to_string();
    let stopped =
        Portcullis::run(&["health", "--config", file.as_str(), "--listen", &address]).await;
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert!(
        stopped.stderr.contains("is the server running?"),
        "{stopped:?}"
    );
    assert!(stopped.stderr.contains(&address), "{stopped:?}");
}

/// A server without a usable issuer is healthy and not ready.
#[tokio::test]
async fn a_server_without_keys_is_not_ready() {
    let text = configuration("http://127.0.0.1:3000", "");
    let file = Scratch::file("health.toml", &text);
    let portcullis = Portcullis::serve(&text).await;
    assert_eq!(health(&file, &portcullis, &[]).await.code, Some(0));
    let ready = health(&file, &portcullis, &["--ready"]).await;
    assert_eq!(ready.code, Some(1), "{ready:?}");
    assert!(ready.stderr.contains("/readyz answered 503"), "{ready:?}");
}

/// F8: the health check of a listener with TLS uses TLS. The certificate is for another name than
/// the address.
#[tokio::test]
async fn a_listener_with_tls_is_checked_over_tls() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["mcp.example.com".to_owned()]).unwrap();
    let certificates = Scratch::file("cert.pem", &cert.pem());
    let key = Scratch::file("key.pem", &signing_key.serialize_pem());
    let tls = format!(
        "tls = {{ certificates = {:?}, key = {:?} }}",
        certificates.as_str(),
        key.as_str()
    );
    let text = configuration("https://mcp.example.com", &tls);
    let file = Scratch::file("health.toml", &text);
    let portcullis = Portcullis::serve(&text).await;
    let healthy = health(&file, &portcullis, &[]).await;
    assert_eq!(healthy.code, Some(0), "{healthy:?}");

    let plain = Scratch::file("health.toml", &configuration("http://127.0.0.1:3000", ""));
    assert_eq!(
        health(&plain, &portcullis, &[]).await.code,
        Some(1),
        "without TLS"
    );
}
