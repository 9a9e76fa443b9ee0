//! `portcullis idp`: the development authorization server as a program.

use std::process::Stdio;

use portcullis_metadata::{authorization::PkceVerifier, authorization_server_urls};
use portcullis_scenarios::{
    HttpResponse, Portcullis, Process, Request, Scratch, TIMEOUT, portcullis_command,
    portcullis_program,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::ChildStdout,
    time::timeout,
};

pub(crate) const REDIRECT: &str = "http%3A%2F%2F127.0.0.1%3A4321%2Fcallback";

/// The running program. It is killed when dropped.
pub(crate) struct Idp {
    _process: Process,
    pub(crate) issuer: String,
}

impl Idp {
    /// Starts the authorization server and reads its address.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let mut command = portcullis_command(portcullis_program());
        command
            .args(["idp", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Process::start("idp", &mut command).unwrap();
        let stdout = ChildStdout::from_std(process.take_stdout().unwrap()).unwrap();
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(TIMEOUT, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let issuer = line
            .strip_prefix("development authorization server: ")
            .unwrap()
            .to_owned();
        Self {
            _process: process,
            issuer,
        }
    }

    /// Returns the authority and the path of the issuer.
    fn parts(&self) -> (&str, &str) {
        let rest = self.issuer.strip_prefix("http://").unwrap();
        rest.split_at(rest.find('/').unwrap_or(rest.len()))
    }

    pub(crate) fn issuer_path(&self) -> &str {
        self.parts().1
    }

    /// Returns the path of an endpoint below the issuer.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.issuer_path().trim_end_matches('/'))
    }

    pub(crate) async fn send(&self, request: Request) -> HttpResponse {
        request.send(self.parts().0.parse().unwrap()).await
    }

    /// Sends a form to an endpoint below the issuer.
    pub(crate) async fn post(&self, name: &str, form: String) -> HttpResponse {
        let request = Request::new("POST", &self.path(name))
            .header("Content-Type", "application/x-www-form-urlencoded");
        self.send(request.body(form)).await
    }
}

/// K2: what the published conformance scenarios for authorization servers need: the metadata with
/// the issuer, and a code grant of a public client that requests neither scope nor resource.
#[tokio::test]
async fn metadata_and_code_grant_for_the_conformance_scenarios() {
    let clients = Scratch::file(
        "clients.toml",
        "[[client]]\nid = \"c\"\nredirect_uris = [\"http://127.0.0.1/callback\"]\n",
    );
    let arguments = [
        "--auto-consent",
        "--clients",
        clients.as_str(),
        "--default-resource",
        "http://127.0.0.1:3000/mcp",
    ];
    let idp = Idp::start(&arguments).await;
    let issuer = portcullis_metadata::Issuer::parse(&idp.issuer).unwrap();
    for url in authorization_server_urls(&issuer) {
        let response = idp.send(Request::new("GET", url.path())).await;
        let metadata = response.json();
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert_eq!(metadata["issuer"], *idp.issuer);
        assert_eq!(metadata["client_id_metadata_document_supported"], true);
        assert_eq!(metadata["response_types_supported"][0], "code");
        assert_eq!(metadata["code_challenge_methods_supported"][0], "S256");
    }
    let verifier = PkceVerifier::generate().unwrap();
    let target = format!(
        "/authorize?response_type=code&client_id=c&state=s&redirect_uri={REDIRECT}&code_challenge={}&code_challenge_method=S256",
        verifier.challenge().as_str()
    );
    let granted = idp.send(Request::new("GET", &target)).await;
    let location = granted.header("location").unwrap();
    let returned = |name: &str| {
        let mut pairs = location
            .split(['?', '&'])
            .filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let value = pairs
            .next()
            .unwrap_or_else(|| panic!("no {name} in {location}"));
        assert_eq!(pairs.next(), None, "{name} once");
        value
    };
    assert!(location.starts_with("http://127.0.0.1:4321/callback?"));
    assert_eq!(returned("state"), "s");
    assert_eq!(
        returned("iss"),
        idp.issuer.replace(':', "%3A").replace('/', "%2F")
    );

    let form = format!(
        "grant_type=authorization_code&client_id=c&code={}&code_verifier={}&redirect_uri={REDIRECT}",
        returned("code"),
        verifier.secret()
    );
    let response = idp.post("token", form).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.json()["token_type"], "Bearer");
    assert!(response.json()["access_token"].is_string());
}

/// K1, J6: a configured resource server introspects with a secret from a file, a confidential
/// client gets a token, and registration needs the initial access token.
#[tokio::test]
async fn clients_and_tokens_come_from_files() {
    let secret = Scratch::file("secret", "hush\n");
    let initial = Scratch::file("initial", "first\n");
    let clients = format!(
        "[[client]]\nid = \"resource\"\nsecret = {{ file = \"{0}\" }}\nintrospect = true\n\
         [[client]]\nid = \"machine\"\nsecret = {{ file = \"{0}\" }}\nauth_method = \"client_secret_post\"\n\
         grant_types = [\"client_credentials\"]\n",
        secret.as_str()
    );
    let clients = Scratch::file("clients.toml", &clients);
    let arguments = [
        "--clients",
        clients.as_str(),
        "--initial-access-token-file",
        initial.as_str(),
        "--admin",
    ];
    let idp = Idp::start(&arguments).await;
    let machine = "grant_type=client_credentials&client_id=machine&client_secret=hush&resource=http%3A%2F%2F127.0.0.1%2Fmcp";
    let token = idp.post("token", machine.to_owned()).await.json()["access_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let introspect = async || {
        let form = format!("client_id=resource&client_secret=hush&token={token}");
        idp.post("introspect", form).await.json()["active"].clone()
    };
    assert_eq!(introspect().await, true);

    let metadata = r#"{"redirect_uris":["http://127.0.0.1/callback"]}"#;
    assert_eq!(
        idp.send(Request::post("/register", metadata)).await.status,
        401
    );
    let registered = idp
        .send(Request::post("/register", metadata).bearer("first"))
        .await;
    assert_eq!(registered.status, 201, "{registered:?}");

    let rotated = idp
        .send(Request::post("/admin/rotate", r#"{"old_keys":"withdraw"}"#))
        .await;
    assert_eq!(rotated.status, 204, "{rotated:?}");
    assert_eq!(introspect().await, false, "its key is withdrawn");
}

/// K1: an invalid file causes an error of one line with the fix and without the file's secrets.
#[tokio::test]
async fn an_invalid_file_causes_one_line() {
    for (text, parts) in [
        (
            "[[client]]\nid = \"a\"\nsecret = \"hunter2\"\n",
            &["clients.toml:3: ", "{ env = \"NAME\" }"][..],
        ),
        (
            "[[client]]\nid = \"a\"\nintrospect = \"hunter2\"\n",
            &["clients.toml:3: ", "expected true or false"],
        ),
        (
            "[[client]]\nid = \"a\"\nsecert = \"hunter2\"\n",
            &["clients.toml:3: ", "did you mean `secret`?"],
        ),
        ("[[client]\n", &["clients.toml:1: "]),
        (
            "[[client]]\nid = \"a\"\nintrospect = true\n",
            &["\"a\"", "give it a secret or keys"],
        ),
        (
            "[[client]]\nid = \"a\"\nredirect_uris = [\"http://client.example/\"]\n",
            &["http://client.example/", "https"],
        ),
    ] {
        let file = Scratch::file("clients.toml", text);
        let finished =
            Portcullis::run(&["idp", "--listen", "127.0.0.1:0", "--clients", file.as_str()]).await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert!(
            parts.iter().all(|part| finished.stderr.contains(part)),
            "{finished:?}"
        );
        assert!(!finished.stderr.contains("hunter2"));
    }
    let finished = Portcullis::run(&[
        "idp",
        "--listen",
        "127.0.0.1:0",
        "--clients",
        "/nowhere/clients.toml",
    ])
    .await;
    assert!(
        finished
            .stderr
            .contains("/nowhere/clients.toml cannot be read"),
        "{finished:?}"
    );
}
