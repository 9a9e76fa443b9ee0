//! Warnings of `check` as root about files that the service of the packages cannot read: root can
//! read every file, and the service runs as its own user.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use portcullis_config::Config;
use serde_json::Value;

/// The user of the packaged service, and the directory of its configuration.
const USER: &str = "portcullis";
const DIRECTORY: &str = "/etc/portcullis";

/// Returns a warning for each file of the service's configuration that its user cannot read.
/// Returns none if this process is not root's, the configuration is another one, or there is no
/// such user.
pub(super) fn warnings(file: &Path, config: &Config) -> Vec<String> {
    let is_of_service = fs::canonicalize(file).is_ok_and(|file| file.starts_with(DIRECTORY));
    if !rustix::process::geteuid().is_root() || !is_of_service {
        return Vec::new();
    }
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    let accounts = Accounts {
        users: read("/etc/passwd"),
        groups: read("/etc/group"),
    };
    let Some(user) = accounts.user(USER) else {
        return Vec::new();
    };
    let files = [("the configuration".to_owned(), file.to_owned())]
        .into_iter()
        .chain(files(config));
    files
        .filter_map(|(key, file)| Some(warning(&key, &file, &closed(&file, &user)?, &accounts)))
        .collect()
}

/// The text of `/etc/passwd` and `/etc/group`.
struct Accounts {
    users: String,
    groups: String,
}

/// A user with its groups.
struct User {
    id: u32,
    groups: Vec<u32>,
}

/// A file or directory that a user cannot read or search.
struct Closed {
    path: PathBuf,
    owner: u32,
    group: u32,
    mode: u32,
}

impl Accounts {
    fn user(&self, name: &str) -> Option<User> {
        let fields: Vec<&str> = self
            .users
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|line| line[0] == name)?;
        let (id, group) = (fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
        let others = self.groups.lines().filter_map(|line| {
            let mut fields = line.split(':').skip(2);
            let id = fields.next()?.parse().ok()?;
            fields
                .next()?
                .split(',')
                .any(|member| member == name)
                .then_some(id)
        });
        Some(User {
            id,
            groups: others.chain([group]).collect(),
        })
    }

    /// Returns the name with this number in lines such as `name:x:number`, or the number.
    fn name(lines: &str, id: u32) -> String {
        let mut lines = lines.lines().map(|line| line.split(':'));
        let found = lines.find_map(|mut line| {
            line.next()
                .filter(|_| line.nth(1).is_some_and(|field| field.parse() == Ok(id)))
        });
        found.map_or_else(|| id.to_string(), str::to_owned)
    }
}

impl User {
    /// Whether the permissions allow the user what `bits` say: 4 for reading, 1 for searching a
    /// directory.
    fn may(&self, metadata: &fs::Metadata, bits: u32) -> bool {
        let shift = if metadata.uid() == self.id {
            6
        } else if self.groups.contains(&metadata.gid()) {
            3
        } else {
            0
        };
        (metadata.mode() >> shift) & bits == bits
    }
}

/// Returns the directory or file that keeps a user from reading a file. A file that does not exist
/// is an error of its own.
fn closed(file: &Path, user: &User) -> Option<Closed> {
    let file = fs::canonicalize(file).ok()?;
    let of = |path: &Path, bits: u32| -> io::Result<Option<Closed>> {
        let metadata = fs::metadata(path)?;
        let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777);
        Ok((!user.may(&metadata, bits)).then(|| Closed {
            path: path.to_owned(),
            owner,
            group,
            mode,
        }))
    };
    let directories = file
        .ancestors()
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev();
    let mut closed = directories.filter_map(|directory| of(directory, 1).ok()?);
    closed.next().or_else(|| of(&file, 4).ok()?)
}

fn warning(key: &str, file: &Path, closed: &Closed, accounts: &Accounts) -> String {
    let Closed {
        path,
        owner,
        group,
        mode,
    } = closed;
    let (owner, group) = (
        Accounts::name(&accounts.users, *owner),
        Accounts::name(&accounts.groups, *group),
    );
    let is_directory = path.is_dir();
    let (file, path) = (file.display(), path.display());
    let fix = match is_directory {
        true => format!("let the user search that directory, or move the file to {DIRECTORY}"),
        false => format!("run `chgrp {USER} {path}` and `chmod 640 {path}`"),
    };
    format!(
        "{key} ({file}) cannot be read by the user {USER} of the service: {path} belongs to {owner}:{group} with mode \
         {mode:04o}; {fix}"
    )
}

/// Returns the files that a configuration names to be read, each with its key.
fn files(config: &Config) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    if let Ok(value) = serde_json::to_value(config) {
        collect("", "", &value, &mut files);
    }
    files
}

/// Adds the files in a value. A secret is `{ file = "…" }`; other keys of files end with `_file`,
/// or are those of certificates.
fn collect(key: &str, name: &str, value: &Value, files: &mut Vec<(String, PathBuf)>) {
    match value {
        Value::Object(members) => {
            let secret = members
                .get("file")
                .and_then(Value::as_str)
                .filter(|_| members.len() == 1);
            // The target of the audit trail is written.
            if let Some(file) = secret.filter(|_| name != "target") {
                files.push((key.to_owned(), file.into()));
                return;
            }
            for (name, value) in members {
                let key = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                collect(&key, name, value, files);
            }
        }
        Value::Array(values) => {
            for (position, value) in values.iter().enumerate() {
                collect(&format!("{key}[{position}]"), name, value, files);
            }
        }
        Value::String(file)
            if name.ends_with("_file") || matches!(name, "certificates" | "key") =>
        {
            files.push((key.to_owned(), file.into()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use portcullis_config::from_text;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nportcullis:x:110:111::/var/lib/portcullis:/usr/sbin/nologin\n";
    const GROUPS: &str = "root:x:0:\nssl-cert:x:105:postgres,portcullis\nportcullis:x:111:\n";

    fn accounts() -> Accounts {
        Accounts {
            users: USERS.to_owned(),
            groups: GROUPS.to_owned(),
        }
    }

    /// J9: the user has its own group and those that list it.
    #[test]
    fn accounts_are_read() {
        let user = accounts().user("portcullis").unwrap();
        assert_eq!((user.id, user.groups), (110, vec![105, 111]));
        assert!(accounts().user("absent").is_none());
        assert_eq!(
            (Accounts::name(USERS, 110), Accounts::name(GROUPS, 7)),
            ("portcullis".to_owned(), "7".to_owned())
        );
    }

    /// J9: every file that is read is found under its key, and a file that is written is not.
    #[test]
    fn files_are_found() {
        let config = from_text(
            "base_url = 'https://a.example'\ntls = { certificates = '/c', key = '/k' }\naudit = { target = { file = '/log' }, key = { \
             file = '/audit' } }\nsession = { keys = [{ env = 'A' }, { file = '/s' }] }\n[[issuer]]\nissuer = 'https://b.example'\n\
             ca_file = '/ca'\nclient_id = 'me'\nclient_secret = { file = '/secret' }\n[[resource]]\nendpoint = '/mcp'\n\
             upstream = 'demo'\nupstream_ca_file = '/upstream'",
        );
        let mut found: Vec<_> = files(&config.unwrap())
            .into_iter()
            .map(|(key, file)| format!("{key} {}", file.display()))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "audit.key /audit",
                "issuer[0].ca_file /ca",
                "issuer[0].client_secret /secret",
                "resource[0].upstream_ca_file /upstream",
                "session.keys[1] /s",
                "tls.certificates /c",
                "tls.key /k",
            ]
        );
    }

    /// J9: owner, group and others have the bits of their own, and every directory must be open.
    #[test]
    fn closed_files_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let file = inner.join("secret");
        fs::write(&file, "hush").unwrap();
        let (own, group) = (
            fs::metadata(&file).unwrap().uid(),
            fs::metadata(&file).unwrap().gid(),
        );
        let users = [
            User {
                id: own,
                groups: Vec::new(),
            },
            User {
                id: own + 1,
                groups: vec![group],
            },
            User {
                id: own + 1,
                groups: vec![group + 1],
            },
        ];
        let set = |path: &Path, mode: u32| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap()
        };
        set(directory.path(), 0o755);
        for (of_directory, of_file, readable) in [
            (0o755, 0o600, [true, false, false]),
            (0o755, 0o640, [true, true, false]),
            (0o755, 0o644, [true, true, true]),
            (0o755, 0o004, [false, false, true]),
            (0o750, 0o644, [true, true, false]),
            (0o700, 0o644, [true, false, false]),
        ] {
            set(&inner, of_directory);
            set(&file, of_file);
            let found = users.each_ref().map(|user| closed(&file, user).is_none());
            assert_eq!(found, readable, "{of_directory:o} {of_file:o}");
        }
        set(&inner, 0o755);
        set(&file, 0o600);
        let text = warning(
            "tls.key",
            &file,
            &closed(&file, &users[2]).unwrap(),
            &accounts(),
        );
        assert!(
            text.starts_with("tls.key (") && text.contains("with mode 0600; run `chgrp portcullis"),
            "{text}"
        );
        set(&inner, 0o700);
        let text = warning(
            "tls.key",
            &file,
            &closed(&file, &users[2]).unwrap(),
            &accounts(),
        );
        assert!(
            text.contains("inner belongs to") && text.contains("0700; let the user search"),
            "{text}"
        );
        assert!(closed(Path::new("/nowhere/file"), &users[2]).is_none());
    }
}
