//! Connects to the unix socket of the listener for administrators, and checks whose process listens
//! there.
//!
//! The token must not reach another user's process, such as one that created a socket in a shared
//! folder while the server was stopped.

use std::{
    error::Error,
    fmt, fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use tokio::net::UnixStream;

const ROOT: u32 = 0;
/// The permissions of a folder with which the group or everyone can create files in it.
const WRITABLE_FOR_OTHERS: u32 = 0o022;

/// The process at the socket is another user's.
#[derive(Debug)]
pub(super) struct UntrustedPeer {
    path: PathBuf,
    user: u32,
}

impl fmt::Display for UntrustedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the token was not sent: the process at the unix socket {} belongs to user {}, who is neither root nor you, and others \
             can create files in the folders of the socket",
            self.path.display(),
            self.user
        )
    }
}

impl Error for UntrustedPeer {}

/// Connects to the socket. Its process belongs to root, to the user of this process, or to the user
/// to whom the path belongs: the owner of the socket, if only this user, root and the user of this
/// process can replace it. Fails when nothing listens there, and with [`UntrustedPeer`] for the
/// process of another user.
pub(super) async fn connect(path: &Path) -> anyhow::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    // The user who called `listen`.
    let user = stream.peer_cred()?.uid();
    let is_trusted = user == ROOT || user == geteuid().as_raw() || belongs_to(path, user)?;
    if is_trusted {
        Ok(stream)
    } else {
        Err(UntrustedPeer {
            path: path.to_owned(),
            user,
        }
        .into())
    }
}

/// Returns whether the socket is this user's, and only this user, root and the user of this process
/// can replace it or a folder of its path. Links are checked as well as what they lead to.
fn belongs_to(path: &Path, user: u32) -> io::Result<bool> {
    let (absolute, resolved) = (std::path::absolute(path)?, fs::canonicalize(path)?);
    if fs::symlink_metadata(&resolved)?.uid() != user {
        return Ok(false);
    }
    for folder in absolute
        .ancestors()
        .skip(1)
        .chain(resolved.ancestors().skip(1))
    {
        let metadata = fs::metadata(folder)?;
        let has_trusted_owner = [ROOT, geteuid().as_raw(), user].contains(&metadata.uid());
        if !has_trusted_owner || metadata.mode() & WRITABLE_FOR_OTHERS != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    use tokio::net::UnixListener;

    use super::*;

    /// E12: a process of the same user is trusted wherever its socket is.
    #[tokio::test]
    async fn the_own_process_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        assert!(connect(&path).await.is_err());
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(connect(&path).await.is_ok());
    }

    /// E12: a path belongs to a user only if no one else can write to its folders. That of a
    /// temporary folder does not.
    #[test]
    fn a_path_in_a_shared_folder_belongs_to_no_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        fs::write(&path, "").unwrap();
        let user = geteuid().as_raw();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(!belongs_to(&path, user).unwrap());
        assert!(!belongs_to(&path, user + 1).unwrap(), "another owner");
        assert!(belongs_to(&folder.path().join("missing"), user).is_err());
        // A program of the system, in folders of root.
        assert!(belongs_to(Path::new("/bin/sh"), ROOT).unwrap());
        assert!(!belongs_to(Path::new("/bin/sh"), user + 1).unwrap());
    }
}
