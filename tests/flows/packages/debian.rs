//! The maintainer script of the Debian package that runs after a removal.

use std::{fs, process::Command};

use portcullis_scenarios::Scratch;

use super::deploy;

/// A purge removes what the service and the package wrote, and the documented file of secrets. A
/// removal keeps them, and a purge keeps other files.
#[test]
fn only_a_purge_deletes_files() {
    struct Case {
        action: &'static str,
        /// Another file is beside the configuration.
        has_own_file: bool,
        /// The files of the service remain.
        keeps_files: bool,
    }

    for Case {
        action,
        has_own_file,
        keeps_files,
    } in [
        Case {
            action: "remove",
            has_own_file: true,
            keeps_files: true,
        },
        Case {
            action: "purge",
            has_own_file: true,
            keeps_files: false,
        },
        Case {
            action: "purge",
            has_own_file: false,
            keeps_files: false,
        },
    ] {
        let root = Scratch::folder("purge");
        let path = |name: &str| root.path().join(name);
        for folder in ["etc/portcullis", "var/lib/portcullis", "var/log/portcullis"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        fs::write(path("etc/portcullis/environment"), "SECRET=hush").unwrap();
        fs::write(path("var/lib/portcullis/session-keys"), "hush").unwrap();
        if has_own_file {
            fs::write(path("etc/portcullis/own.pem"), "").unwrap();
        }
        let status = Command::new("sh")
            .args(["-c", &script_below(&root), "postrm", action])
            .status()
            .unwrap();
        assert!(status.success());
        for file in [
            "etc/portcullis/environment",
            "var/lib/portcullis/session-keys",
            "var/log/portcullis",
        ] {
            assert_eq!(path(file).exists(), keeps_files, "{action} {file}");
        }
        assert_eq!(path("etc/portcullis").exists(), has_own_file, "{action}");
    }
}

/// Returns the script with all of its paths below this folder.
fn script_below(root: &Scratch) -> String {
    let script = fs::read_to_string(deploy("debian/postrm")).unwrap();
    ["/etc/", "/var/", "/run/"]
        .into_iter()
        .fold(script, |script, folder| {
            let moved = format!("{}{folder}", root.as_str());
            let script = script.replace(&format!(" {folder}"), &format!(" {moved}"));
            assert_eq!(
                script.matches(folder).count(),
                script.matches(&moved).count(),
                "the script would leave the test"
            );
            script
        })
}
