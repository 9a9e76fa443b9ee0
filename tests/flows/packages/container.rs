//! The container image: its variables, and the warnings of the program that runs in it.

use std::{fs, path::Path};

use portcullis_scenarios::Portcullis;

use super::deploy;

/// What the log says about state that is on no volume: without and with configured keys.
const NO_VOLUME: [&str; 2] = [
    "sessions end with this container: no volume is mounted at",
    "sessions that have ended become valid again when this container is replaced: no volume is mounted at",
];

/// In the container image, a listener on all addresses is expected. Elsewhere, it causes a warning.
#[tokio::test]
async fn a_listener_on_all_addresses_is_expected() {
    let file = deploy("portcullis.toml");
    for (container, is_warned) in [("", true), ("1", false)] {
        let variables = [
            ("PORTCULLIS_LISTEN", "0.0.0.0:3000"),
            ("PORTCULLIS_CONTAINER", container),
        ];
        let checked =
            Portcullis::run_with(&["check", "--config", file.to_str().unwrap()], &variables).await;
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert_eq!(
            checked
                .stdout
                .contains("serves plain http on all addresses"),
            is_warned,
            "{checked:?}"
        );
    }
    let containerfile = fs::read_to_string(deploy("container/Containerfile")).unwrap();
    for variable in ["PORTCULLIS_CONTAINER=1", "PORTCULLIS_LISTEN=0.0.0.0:3000"] {
        assert!(containerfile.contains(variable), "{variable}");
    }
}

/// E12: in the container image, the log says what is lost with the container if the state directory
/// is on no volume: sessions or, if their keys are configured, which of them have ended.
#[tokio::test]
async fn state_outside_of_a_volume_causes_a_warning() {
    // Depending on the machine, one of these folders can be below a mount, which counts as a
    // volume.
    for parent in [
        std::env::temp_dir().as_path(),
        Path::new(env!("CARGO_TARGET_TMPDIR")),
    ] {
        let state = parent.join(format!(
            "portcullis-{}-state-of-container",
            std::process::id()
        ));
        for (container, keys, expected) in [
            ("", None, [false, false]),
            ("1", None, [true, false]),
            ("1", Some("[{env=\"SESSION_KEY\"}]"), [false, true]),
        ] {
            let log = log_of_start(state.to_str().unwrap(), container, keys).await;
            assert_eq!(
                NO_VOLUME.map(|text| log.contains(text)),
                expected.map(|expected| expected && !is_on_volume(&state)),
                "{state:?}: {log}"
            );
        }
        fs::remove_dir_all(&state).unwrap();
    }
}

/// N4: in the container image, the error says how to make the state directory writable.
#[tokio::test]
async fn state_on_a_read_only_volume_prevents_the_start() {
    let file = deploy("portcullis.toml");
    let arguments = [
        "serve",
        "--config",
        file.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ];
    let environment = [
        ("STATE_DIRECTORY", "/proc/portcullis"),
        ("PORTCULLIS_CONTAINER", "1"),
    ];
    let refused = Portcullis::run_with(&arguments, &environment).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("mount a volume there that its user can write"),
        "{refused:?}"
    );
}

/// Starts and stops the server with this state directory, value of `PORTCULLIS_CONTAINER` and
/// `session.keys`, and returns its log.
async fn log_of_start(state: &str, container: &str, keys: Option<&str>) -> String {
    let file = deploy("portcullis.toml");
    let arguments = [
        "serve",
        "--config",
        file.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ];
    let mut environment = vec![
        ("STATE_DIRECTORY", state),
        ("PORTCULLIS_CONTAINER", container),
        ("SESSION_KEY", "0123456789abcdef0123456789abcdef"),
    ];
    environment.extend(keys.map(|keys| ("PORTCULLIS_SESSION__KEYS", keys)));
    let portcullis = Portcullis::start_with(&arguments, &environment).await;
    let finished = portcullis.stop().await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.stderr
}

/// Returns whether a mount other than the root contains this path.
fn is_on_volume(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut points = mounts.lines().map(|line| line.split(' ').nth(4).unwrap());
    points.any(|point| point != "/" && path.starts_with(point))
}
