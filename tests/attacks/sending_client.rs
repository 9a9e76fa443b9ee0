//! Clients that send a large body before they read the response. They must receive the challenge
//! and not a reset.

use std::process::Stdio;

use portcullis_scenarios::{Deployment, Request, TIMEOUT, send_bytes};
use tokio::{process::Command, time::timeout};

const NODE_HTTP: &str = r#"
const http = require('node:http');
const request = http.request({ host: '127.0.0.1', port: PORT, path: '/mcp', method: 'POST',
  headers: { 'Content-Type': 'application/json', 'Content-Length': 1048576 } }, (response) => {
  response.resume();
  response.on('end', () => console.log(response.statusCode, response.headers['www-authenticate']));
});
request.on('error', (error) => { console.log('error', error.code); process.exit(1); });
request.end(Buffer.alloc(1048576, 32));
"#;

const NODE_FETCH: &str = r#"
fetch('http://127.0.0.1:PORT/mcp', { method: 'POST', headers: { 'Content-Type': 'application/json' },
  body: ' '.repeat(1048576) }).then(async (response) => {
  await response.text();
  console.log(response.status, response.headers.get('www-authenticate'));
}, (error) => { console.log('error', error.cause && error.cause.code); process.exit(1); });
"#;

const PYTHON_HTTP_CLIENT: &str = r#"
import http.client
connection = http.client.HTTPConnection('127.0.0.1', PORT)
connection.request('POST', '/mcp', body=b' ' * 1048576, headers={'Content-Type': 'application/json'})
response = connection.getresponse()
response.read()
print(response.status, response.getheader('www-authenticate'))
"#;

const PYTHON_URLLIB: &str = r#"
import urllib.error, urllib.request
request = urllib.request.Request('http://127.0.0.1:PORT/mcp', data=b' ' * 1048576,
                                 headers={'Content-Type': 'application/json'}, method='POST')
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
except urllib.error.HTTPError as error:
    error.read()
    print(error.code, error.headers['www-authenticate'])
"#;

const PYTHON_CHUNKED: &str = r#"
import http.client
connection = http.client.HTTPConnection('127.0.0.1', PORT)
connection.request('POST', '/mcp', body=(b' ' * 65536 for _ in range(16)), encode_chunked=True,
                   headers={'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked'})
response = connection.getresponse()
response.read()
print(response.status, response.getheader('www-authenticate'))
"#;

/// Runs a script with node or python3, and returns its output.
async fn run(program: &str, script: &str, port: u16) -> String {
    let script = script.replace("PORT", &port.to_string());
    let flag = if program == "node" { "-e" } else { "-c" };
    let output = Command::new(program)
        .args([flag, &script])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(TIMEOUT, output)
        .await
        .unwrap_or_else(|_| panic!("{program} does not end:\n{script}"))
        .unwrap_or_else(|error| panic!("this scenario needs `{program}` on the PATH: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(
        output.status.success(),
        "{program}: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// B8: Node's and Python's clients read the challenge after a 1 MiB POST without a token.
#[tokio::test]
async fn clients_read_the_challenge() {
    let deployment = Deployment::start().await;
    let port = deployment.portcullis.address().port();
    for (program, script) in [
        ("node", NODE_HTTP),
        ("node", NODE_FETCH),
        ("python3", PYTHON_HTTP_CLIENT),
        ("python3", PYTHON_URLLIB),
        ("python3", PYTHON_CHUNKED),
    ] {
        for _ in 0..2 {
            let output = run(program, script, port).await;
            assert!(
                output.starts_with("401 Bearer realm=\"mcp\", resource_metadata="),
                "{output}\n{script}"
            );
        }
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// B8: clients that send the whole body before they read receive every early rejection.
#[tokio::test]
async fn early_rejections_are_received() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let expired = deployment.token().expires_in(-60).sign();
    let body = vec![b' '; 1 << 20];
    for (case, request, status) in [
        (
            "no token",
            Request::post(Deployment::ENDPOINT, body.clone()),
            401,
        ),
        (
            "a bad token",
            Request::post(Deployment::ENDPOINT, body.clone()).bearer(&expired),
            401,
        ),
        (
            "a token in the query",
            Request::post("/mcp?access_token=x", body.clone()),
            401,
        ),
        (
            "too large",
            Request::post(Deployment::ENDPOINT, vec![b' '; 6 << 20]).bearer(&good),
            413,
        ),
        (
            "an unknown path",
            Request::post("/other", body.clone()),
            404,
        ),
        (
            "a foreign origin",
            Request::post(Deployment::ENDPOINT, body.clone())
                .header("Origin", "http://attacker.example"),
            403,
        ),
        (
            "another method",
            Request::new("PUT", Deployment::ENDPOINT)
                .bearer(&good)
                .body(body.clone()),
            405,
        ),
    ] {
        let response = send_bytes(deployment.portcullis.address(), &request.to_bytes()).await;
        assert_eq!(response.status, status, "{case}: {response:?}");
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}
