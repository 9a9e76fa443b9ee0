//! The files of `deploy` with the program: example configurations, and the launcher of the npm package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use portcullis_scenarios::{
    Portcullis, Process, Scratch, Signal, free_address, portcullis_command, portcullis_program,
};
use rustix::process::{Pid, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use xtask::workspace;

fn deploy(file: &str) -> PathBuf {
    workspace::root().join("deploy").join(file)
}

/// The block `config: |` of the chart's values.
fn configuration_of_chart() -> String {
    let values = fs::read_to_string(deploy("helm/portcullis/values.yaml")).unwrap();
    let lines = values.lines().skip_while(|line| *line != "config: |").skip(1);
    lines
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// J9: every configuration in `deploy` passes `check`, without a warning.
#[tokio::test]
async fn example_configurations_are_valid() {
    let chart = Scratch::file("chart.toml", &configuration_of_chart());
    for file in [deploy("portcullis.toml"), deploy("compose/portcullis.toml"), chart.path().to_owned()] {
        let checked = Portcullis::run(&["check", "--json", "--config", file.to_str().unwrap()]).await;
        assert_eq!(checked.code, Some(0), "{file:?}: {checked:?}");
        let report: Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(report["warnings"], Value::Array(Vec::new()), "{file:?}");
    }
}

/// The launcher, installed beside a package that contains the program under test.
struct Installed(Scratch);

impl Installed {
    /// Installs the launcher, and the packages of two platforms with this program.
    fn new() -> Self {
        let folder = Scratch::folder("npm");
        let modules = folder.path().join("node_modules");
        let launcher = modules.join("portcullis-mcp");
        fs::create_dir_all(launcher.join("bin")).unwrap();
        for file in ["package.json", "bin/portcullis-mcp.js"] {
            fs::copy(deploy("npm").join(file), launcher.join(file)).unwrap();
        }
        for platform in ["linux-x64", "linux-arm64"] {
            let bin = modules.join(format!("portcullis-mcp-{platform}")).join("bin");
            fs::create_dir_all(&bin).unwrap();
            std::os::unix::fs::symlink(portcullis_program(), bin.join("portcullis")).unwrap();
        }
        Self(folder)
    }

    /// The command that starts the launcher by node.
    fn command(&self) -> Command {
        let mut node = portcullis_command(Path::new("node"));
        node.arg(self.0.path().join("node_modules/portcullis-mcp/bin/portcullis-mcp.js"));
        node
    }
}

/// The launcher passes arguments, output and exit code through, and forwards the signal that ends it.
#[tokio::test]
async fn the_npm_launcher_starts_the_program() {
    let installed = Installed::new();
    let version = installed.command().arg("--version").output().unwrap();
    assert!(version.status.success(), "{version:?}");
    assert_eq!(version.stdout, format!("portcullis {}\n", env!("CARGO_PKG_VERSION")).as_bytes());

    let missing = installed.command().args(["check", "--config", "/nowhere"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let invalid = installed.command().arg("no-such-command").output().unwrap();
    assert_eq!(invalid.status.code(), Some(2), "{invalid:?}");

    let address = free_address().unwrap();
    let mut serve = installed.command();
    serve.args(["serve", "--config"]).arg(deploy("compose/portcullis.toml")).args(["--listen", &address.to_string()]);
    let mut node = Process::start("node", serve.env("PORTCULLIS_STATE_DIR", "off")).unwrap();
    let listens = async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), listens).await.expect("it listens");

    // Only to the launcher, as a client that ends its server does.
    kill_process(Pid::from_raw(i32::try_from(node.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), node.wait()).await.expect("it ends").unwrap();
    assert_eq!(ended.code(), Some(0), "the program ended cleanly");
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the program has ended, too");
}

/// Without the package for the platform, and on platforms without one, the launcher says so in one line.
#[tokio::test]
async fn the_npm_launcher_names_what_is_missing() {
    let installed = Installed::new();
    fs::remove_dir_all(installed.0.path().join("node_modules/portcullis-mcp-linux-x64")).unwrap();
    fs::remove_dir_all(installed.0.path().join("node_modules/portcullis-mcp-linux-arm64")).unwrap();
    let output = installed.command().arg("--version").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("is not installed"), "{message}");
    assert!(message.contains("--omit=optional"), "{message}");
}

/// A purge removes what the service and the package wrote, and the documented file of secrets. A removal keeps them, and a purge
/// keeps other files.
#[test]
fn a_purge_of_the_debian_package() {
    for (action, other, kept) in [("remove", true, true), ("purge", true, false), ("purge", false, false)] {
        let root = Scratch::folder("purge");
        let path = |name: &str| root.path().join(name);
        for folder in ["etc/portcullis", "var/lib/portcullis", "var/log/portcullis"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        fs::write(path("etc/portcullis/environment"), "SECRET=hush").unwrap();
        fs::write(path("var/lib/portcullis/session-keys"), "hush").unwrap();
        if other {
            fs::write(path("etc/portcullis/own.pem"), "").unwrap();
        }
        let script = fs::read_to_string(deploy("debian/postrm")).unwrap();
        let script = ["/etc/", "/var/", "/run/"].into_iter().fold(script, |script, folder| {
            let moved = format!("{}{folder}", root.path().display());
            let script = script.replace(&format!(" {folder}"), &format!(" {moved}"));
            assert_eq!(
                script.matches(folder).count(),
                script.matches(&moved).count(),
                "the script would leave the test"
            );
            script
        });
        let status = Command::new("sh").args(["-c", &script, "postrm", action]).status().unwrap();
        assert!(status.success());
        for file in ["etc/portcullis/environment", "var/lib/portcullis/session-keys", "var/log/portcullis"] {
            assert_eq!(path(file).exists(), kept, "{action} {file}");
        }
        assert_eq!(path("etc/portcullis").exists(), other, "{action}");
    }
}

/// In the container image, a listener on all addresses is expected, and state that is on no volume causes a warning. Elsewhere, it
/// is the other way around.
#[tokio::test]
async fn the_container_image_has_its_own_warnings() {
    let file = deploy("portcullis.toml");
    let address = format!("0.0.0.0:{}", free_address().unwrap().port());
    for container in [false, true] {
        let variables = [("PORTCULLIS_LISTEN", &*address), ("PORTCULLIS_CONTAINER", if container { "1" } else { "" })];
        let checked = Portcullis::run_with(&["check", "--config", file.to_str().unwrap()], &variables).await;
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert_eq!(checked.stdout.contains("serves plain http on all addresses"), !container, "{checked:?}");
    }
    let containerfile = fs::read_to_string(deploy("container/Containerfile")).unwrap();
    assert!(
        containerfile.contains("PORTCULLIS_CONTAINER=1") && containerfile.contains("PORTCULLIS_LISTEN=0.0.0.0:3000")
    );
}

/// E12: the program in the image says that sessions end with the container, or that the volume cannot be written.
#[tokio::test]
async fn the_container_image_needs_a_volume() {
    let state = Scratch::path_for("state");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut points = mounts.lines().map(|line| line.split(' ').nth(4).unwrap());
    // Where the temporary directory is a mount, it is on a volume.
    let has_volume = points.any(|point| point != "/" && state.path().starts_with(point));
    let without_volume = (!has_volume).then_some((state.as_str(), "no volume is mounted at"));
    let unwritable = ("/proc/portcullis", "mount a volume there that its user can write");
    for (state, words) in without_volume.into_iter().chain([unwritable]) {
        let mut serve = portcullis_command(portcullis_program());
        serve.args(["serve", "--config"]).arg(deploy("portcullis.toml")).args(["--listen", "127.0.0.1:0"]);
        serve.env("STATE_DIRECTORY", state).env("PORTCULLIS_CONTAINER", "1").stderr(Stdio::piped());
        let mut process = Process::start("serve", &mut serve).unwrap();
        let stderr = tokio::process::ChildStderr::from_std(process.take_stderr().unwrap()).unwrap();
        let mut lines = BufReader::new(stderr).lines();
        let warning = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("the warning");
                if line.contains(words) {
                    return line;
                }
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), warning).await.expect(words);
    }
}
