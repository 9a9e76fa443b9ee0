use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use crate::{Config, SecretSource, container::is_container};
use rustix::process::geteuid;

/// The bits of a mode with which others can replace the content.
const WRITABLE: u32 = 0o022;
/// The bit of a mode with which every user can read the content. A group can be the service's own.
const READABLE: u32 = 0o004;
const ROOT: u32 = 0;

/// Returns a warning for each file with a secret that every user of this machine can read, that
/// others can write, or that belongs to a user other than root and the current one, unless that is
/// root, who checks for another user. A file that cannot be read is an error elsewhere.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let files = secrets(config)
        .into_iter()
        .filter_map(|(key, source)| Some((key, source.file()?)));
    let of_administrators = config.admin.iter().filter_map(|admin| admin.tls.as_ref());
    let tls = config.tls.iter().map(|tls| ("tls.key", tls));
    let tls_keys = tls
        .chain(of_administrators.map(|tls| ("admin.tls.key", tls)))
        .map(|(key, tls)| (key.to_owned(), &*tls.key));
    files
        .chain(tls_keys)
        .filter_map(|(key, file)| secret_file_warning(&key, file))
        .collect()
}

/// Returns a warning for a file with a secret, as for those of a configuration, if others can read
/// or replace it. `key` is the key or the option that names the file. `None` also for a file that
/// cannot be read.
pub fn secret_file_warning(key: &str, file: &Path) -> Option<String> {
    let metadata = fs::metadata(file).ok()?;
    let access = Access {
        mode: metadata.mode(),
        owner: metadata.uid(),
        user: geteuid().as_raw(),
        is_container: is_container(),
    };
    warning(key, file, &access)
}

/// Who can use a file, and who asks.
struct Access {
    mode: u32,
    owner: u32,
    /// The user of this process. Root can check for another user.
    user: u32,
    /// In a container, only the service can read the file. Kubernetes mounts secrets as readable by
    /// every user of the container.
    is_container: bool,
}

impl Access {
    /// Returns the fix: `of_others` for a file that another user can need, whom `chmod 600` would
    /// keep from reading it.
    fn fix(&self, of_others: &'static str) -> &'static str {
        if self.user == ROOT || self.owner != self.user {
            of_others
        } else {
            "run `chmod 600` on it"
        }
    }
}

/// Returns all configured secrets with their keys.
pub(super) fn secrets(config: &Config) -> Vec<(String, &SecretSource)> {
    let admin = config.admin.iter().flat_map(|admin| {
        let metrics_token = admin
            .metrics_token
            .iter()
            .map(|source| ("admin.metrics_token".to_owned(), source));
        [("admin.token".to_owned(), &admin.token)]
            .into_iter()
            .chain(metrics_token)
    });
    let session_keys = config.session.keys.iter().flatten().enumerate();
    let session_keys =
        session_keys.map(|(number, source)| (format!("session.keys[{number}]"), source));
    let audit_key = config
        .audit
        .iter()
        .filter_map(|audit| Some(("audit.key".to_owned(), audit.key.as_ref()?)));
    let password = config
        .shared
        .iter()
        .filter_map(|shared| Some(("shared.password".to_owned(), shared.password.as_ref()?)));
    let headers = config.traces.iter().flat_map(|traces| &traces.headers);
    let headers = headers.map(|(name, source)| (format!("traces.headers.{name}"), source));
    let issuers = config.issuer.iter().enumerate();
    let issuers = issuers.filter_map(|(position, issuer)| {
        Some((
            format!("issuer[{position}].client_secret"),
            issuer.client_secret.as_ref()?,
        ))
    });
    admin
        .chain(session_keys)
        .chain(audit_key)
        .chain(password)
        .chain(headers)
        .chain(issuers)
        .chain(secrets_of_broker(config))
        .collect()
}

fn secrets_of_broker(config: &Config) -> impl Iterator<Item = (String, &SecretSource)> {
    let providers = config.providers().enumerate().map(|(position, provider)| {
        (
            format!("broker.provider[{position}].client_secret"),
            &provider.client_secret,
        )
    });
    let others = config.broker.iter().flat_map(|broker| {
        let keys = broker
            .keys
            .iter()
            .map(|source| ("broker.keys".to_owned(), source));
        let clients = broker.introspection.iter().enumerate();
        let clients = clients.map(|(position, client)| {
            (
                format!("broker.introspection[{position}].client_secret"),
                &client.client_secret,
            )
        });
        keys.chain(clients)
    });
    providers.chain(others)
}

fn warning(key: &str, file: &Path, access: &Access) -> Option<String> {
    let shown = file.display();
    let Access { owner, user, .. } = *access;
    let is_writable = access.mode & WRITABLE != 0;
    let is_readable = access.mode & READABLE != 0 && !access.is_container;
    if is_writable && is_readable {
        let fix = access
            .fix("let its group be that of the user who reads it, and run `chmod g-w,o-rwx` on it");
        Some(format!(
            "{key}: other users can write {shown}, and every user of this machine can read it; {fix}"
        ))
    } else if is_writable {
        let fix = access.fix("run `chmod go-w` on it");
        Some(format!("{key}: other users can write {shown}; {fix}"))
    } else if is_readable {
        let fix = access
            .fix("let its group be that of the user who reads it, and run `chmod o-rwx` on it");
        Some(format!(
            "{key}: every user of this machine can read {shown}; {fix}"
        ))
    } else if ![owner, user].contains(&ROOT) && owner != user {
        Some(format!(
            "{key}: {shown} belongs to another user, who can replace it; run `chown` on it"
        ))
    } else {
        None
    }
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    use figment::Jail;

    use super::*;
    use crate::from_text;

    /// J6: the fix leaves a file readable for the service. In a container, its own users are not
    /// those of the machine.
    #[test]
    fn the_fix_leaves_the_file_readable_for_the_service() {
        let warned = |mode, owner, user, is_container| {
            let access = Access {
                mode,
                owner,
                user,
                is_container,
            };
            warning("tls.key", Path::new("k"), &access).unwrap_or_default()
        };
        for (mode, owner, user, fix) in [
            (0o644, 1000, 1000, "; run `chmod 600` on it"),
            (0o660, 1000, 1000, "; run `chmod 600` on it"),
            (0o644, 0, 1000, ", and run `chmod o-rwx` on it"),
            (0o644, 0, 0, ", and run `chmod o-rwx` on it"),
            (0o660, 0, 1000, "; run `chmod go-w` on it"),
            (0o664, 0, 1000, ", and run `chmod g-w,o-rwx` on it"),
            (0o666, 0, 1000, ", and run `chmod g-w,o-rwx` on it"),
            (0o600, 1001, 1000, "; run `chown` on it"),
        ] {
            let warning = warned(mode, owner, user, false);
            assert!(warning.ends_with(fix), "{mode:o} {owner} {user}: {warning}");
        }
        assert_eq!(warned(0o644, 0, 1000, true), "");
        assert!(warned(0o666, 0, 1000, true).ends_with("can write k; run `chmod go-w` on it"));
    }

    /// J6: each file with a secret that others can read or write causes a warning that names its
    /// key.
    #[test]
    fn exposed_files_cause_warnings() {
        Jail::expect_with(|jail| {
            jail.create_file("secret", "x")?;
            let text = r#"
                base_url = "http://127.0.0.1:3000"
                resource = []
                tls = { certificates = "secret", key = "secret" }
                admin = { listen = "127.0.0.1:9900", token = { file = "secret" }, metrics_token = { file = "secret" }, tls = { certificates = "secret", key = "secret" } }
                session = { keys = [{ env = "A" }, { file = "secret" }] }
                audit = { target = "stdout", key = { file = "secret" } }
                shared = { redis = "redis://127.0.0.1", password = { file = "secret" } }
                traces = { endpoint = "http://127.0.0.1:1", headers = { authorization = { file = "secret" } } }
                [[issuer]]
                issuer = "https://auth.example.com"
                client_secret = { file = "secret" }
                [broker]
                keys = { file = "secret" }
                introspection = [{ client_id = "a", client_secret = { file = "secret" }, resource = "/mcp" }]
                [[broker.provider]]
                kind = "oidc"
                client_id = "b"
                client_secret = { file = "secret" }
            "#;
            let config = from_text(text).unwrap();
            for (mode, reason) in [
                (0o644, Some("every user of this machine can read")),
                (0o602, Some("other users can write")),
                (0o660, Some("other users can write")),
                (0o640, None),
                (0o600, None),
            ] {
                fs::set_permissions("secret", Permissions::from_mode(mode)).unwrap();
                let warnings = warnings(&config);
                assert!(
                    warnings
                        .iter()
                        .all(|warning| reason.is_some_and(|reason| warning.contains(reason))),
                    "{warnings:?}"
                );
                let named = warnings
                    .iter()
                    .map(|warning| warning.split(": ").next().unwrap())
                    .collect::<Vec<_>>();
                let all = [
                    "admin.token",
                    "admin.metrics_token",
                    "session.keys[1]",
                    "audit.key",
                    "shared.password",
                    "traces.headers.authorization",
                    "issuer[0].client_secret",
                    "broker.provider[0].client_secret",
                    "broker.keys",
                    "broker.introspection[0].client_secret",
                    "tls.key",
                    "admin.tls.key",
                ];
                assert_eq!(
                    named,
                    if reason.is_some() { &all[..] } else { &[] },
                    "{mode:o}"
                );
            }
            Ok(())
        });
    }
}
