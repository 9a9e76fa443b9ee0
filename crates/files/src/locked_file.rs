use std::fs::File;

/// A file that this process has locked ([`File::lock`], [`File::try_lock`]). Dropping it releases
/// the lock.
///
/// A [`File`] that is only closed can stay locked for a moment: a process that another thread is
/// starting has a copy of it until its program runs.
#[derive(Debug)]
pub struct LockedFile(File);

impl LockedFile {
    /// Takes a file that was just locked.
    pub fn new(locked: File) -> Self {
        Self(locked)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // If that fails, closing the file releases the lock.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_dropped_file_keeps_no_lock() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().write(true).open(path.path()).unwrap();
        let file = open();
        file.lock().unwrap();
        let copy = file.try_clone().unwrap();
        let locked = LockedFile::new(file);
        assert!(open().try_lock().is_err());
        drop(locked);
        assert!(open().try_lock().is_ok());
        drop(copy);
    }
}
