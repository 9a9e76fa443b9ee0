//! Sockets inherited from a service manager (`LISTEN_FDS`).

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixListener},
    process::Stdio,
};

use portcullis_scenarios::{
    Connection, Finished, Request, Scratch, TIMEOUT, listen_address, portcullis_command,
    portcullis_program,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr, Command},
    time::timeout,
};

/// Returns a configuration with these lines at the top and without authorization.
fn configuration(listen: &str) -> Scratch {
    let text = format!(
        "{listen}\nstate_dir = \"off\"\nbase_url = \"http://127.0.0.1:3000\"\n\
         [[resource]]\nendpoint = \"/mcp\"\nauth = \"none\"\nupstream = \"demo\"\n"
    );
    Scratch::file("portcullis.toml", &text)
}

/// Returns a command for `serve` with inherited sockets from descriptor 3. `process` is the value
/// of `LISTEN_PID`; `$$` is the process that becomes the server.
fn activated(
    socket: impl Into<OwnedFd>,
    sockets: u8,
    process: &str,
    configuration: &Scratch,
) -> Command {
    let script = format!(
        "exec 3<&0 4<&0 </dev/null; export LISTEN_FDS={sockets} LISTEN_PID={process}; \
         exec \"$0\" serve --config \"$1\" --log-format json"
    );
    let mut shell = portcullis_command("sh".as_ref());
    shell
        .args(["-c", &script])
        .arg(portcullis_program())
        .arg(configuration.as_str())
        .stdin(Stdio::from(socket.into()));
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = Command::from(shell);
    shell.kill_on_drop(true);
    shell
}

/// A running server. Its log stays open.
struct Server {
    child: Child,
    address: SocketAddr,
    _log: Lines<BufReader<ChildStderr>>,
}

impl Server {
    /// Starts the program and waits until it listens.
    async fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = timeout(TIMEOUT, async {
            loop {
                let line = log.next_line().await.unwrap().unwrap();
                if let Some(address) = listen_address(&line) {
                    return address;
                }
            }
        });
        let address = address.await.unwrap();
        Self {
            child,
            address,
            _log: log,
        }
    }

    async fn stop(mut self) {
        let id = self.child.id().unwrap().to_string();
        assert!(
            Command::new("kill")
                .arg(id)
                .status()
                .await
                .unwrap()
                .success()
        );
        assert_eq!(
            timeout(TIMEOUT, self.child.wait())
                .await
                .unwrap()
                .unwrap()
                .code(),
            Some(0)
        );
    }
}

async fn error_of(mut command: Command) -> String {
    let finished = Finished::from(timeout(TIMEOUT, command.output()).await.unwrap().unwrap());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_eq!(
        finished.stderr.trim_end().lines().count(),
        1,
        "{}",
        finished.stderr
    );
    finished.stderr
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The server listens on the inherited socket. During a restart, connections wait in its queue and
/// are not refused.
#[tokio::test]
async fn a_restart_refuses_no_connection() {
    let (socket, address) = listener();
    for listen in [
        String::new(),
        format!("listen = \"{address}\""),
        "listen = \"127.0.0.1:0\"".to_owned(),
    ] {
        let configuration = configuration(&listen);
        let start = || activated(socket.try_clone().unwrap(), 1, "$$", &configuration);
        let first = Server::start(start()).await;
        assert_eq!(first.address, address);
        assert_eq!(
            Request::new("GET", "/healthz").send(address).await.status,
            200
        );
        first.stop().await;
        let mut waiting = Connection::open(address).await;
        waiting
            .write(&Request::new("GET", "/healthz").to_bytes())
            .await;
        let second = Server::start(start()).await;
        assert_eq!(waiting.response().await.unwrap().status, 200, "{listen}");
        drop(waiting);
        second.stop().await;
    }
}

/// Sockets with the `LISTEN_PID` of another process, or with an invalid one, are not used.
#[tokio::test]
async fn sockets_of_other_processes_are_not_used() {
    for process in ["1", "", "not-a-number"] {
        let (socket, inherited) = listener();
        let server = Server::start(activated(
            socket,
            1,
            process,
            &configuration("listen = \"127.0.0.1:0\""),
        ))
        .await;
        assert_ne!(server.address, inherited, "LISTEN_PID={process}");
        server.stop().await;
    }
}

/// An unsuitable socket causes an error at startup that names the fix.
#[tokio::test]
async fn unsuitable_sockets() {
    let (socket, address) = listener();
    let inherited = || socket.try_clone().unwrap();
    let other = configuration("listen = \"127.0.0.1:1\"");
    let error = error_of(activated(inherited(), 1, "$$", &other)).await;
    assert!(error.contains(&address.to_string()), "{error}");
    assert!(error.contains("remove `listen`"), "{error}");

    let omitted = configuration("");
    let error = error_of(activated(inherited(), 2, "$$", &omitted)).await;
    assert!(error.contains("2 sockets"), "{error}");
    assert!(error.contains("ListenStream="), "{error}");

    let connected = TcpStream::connect(address).unwrap();
    let error = error_of(activated(connected, 1, "$$", &omitted)).await;
    assert!(error.contains("Accept=yes"), "{error}");
    let path = Scratch::path_for("inherited.sock");
    let error = error_of(activated(
        UnixListener::bind(path.path()).unwrap(),
        1,
        "$$",
        &omitted,
    ))
    .await;
    assert!(error.contains("TCP"), "{error}");
    assert!(error.contains("ListenStream=127.0.0.1:3000"), "{error}");
}

/// `auth = "none"` is also rejected if an inherited socket listens on the network.
#[tokio::test]
async fn an_inherited_socket_on_the_network() {
    let socket = TcpListener::bind("0.0.0.0:0").unwrap();
    let error = error_of(activated(socket, 1, "$$", &configuration(""))).await;
    assert!(error.contains("auth = \"none\""), "{error}");
    assert!(error.contains("0.0.0.0"), "{error}");
}
