//! Disks that fail.

use std::{
    fs::File,
    io::{self, Read as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use redb::{StorageBackend, backends::FileBackend};

/// A file that cannot be written while the disk is full, and not read while it is broken.
#[derive(Debug)]
pub(super) struct FailingFile {
    pub(super) file: FileBackend,
    pub(super) is_full: Arc<AtomicBool>,
    pub(super) is_broken: Arc<AtomicBool>,
}

impl FailingFile {
    fn check(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }
}

impl StorageBackend for FailingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is broken"));
        }
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

/// A disk that records what it would have after a power failure: everything that was synchronized,
/// and some of the later writes.
#[derive(Clone, Debug, Default)]
pub(super) struct CrashingDisk(Arc<Mutex<Disk>>);

#[derive(Debug, Default)]
struct Disk {
    current: Vec<u8>,
    synchronized: Vec<u8>,
    unsynchronized: Vec<(usize, Vec<u8>)>,
    images: Vec<Vec<u8>>,
    random: u64,
}

impl CrashingDisk {
    /// Returns the disk with the content of a file.
    pub(super) fn open(&self, mut file: File) -> Self {
        let mut disk = self.0.lock();
        disk.current.clear();
        file.read_to_end(&mut disk.current).unwrap();
        disk.synchronized = disk.current.clone();
        disk.random = 0x9e37_79b9_7f4a_7c15;
        drop(disk);
        self.clone()
    }

    /// Takes the contents that it would have had after power failures since the last call.
    pub(super) fn take_images(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().images)
    }
}

impl Disk {
    /// Returns a pseudo-random number (xorshift).
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Records an image with each of the later writes at an even chance.
    fn record_image(&mut self) {
        let mut image = self.synchronized.clone();
        image.resize(self.current.len().max(image.len()), 0);
        for index in 0..self.unsynchronized.len() {
            let is_written = self.next().is_multiple_of(2);
            let (offset, data) = &self.unsynchronized[index];
            if is_written {
                image[*offset..offset + data.len()].copy_from_slice(data);
            }
        }
        self.images.push(image);
    }
}

impl StorageBackend for CrashingDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = offset as usize;
        let disk = self.0.lock();
        let data = disk.current.get(offset..offset + out.len());
        out.copy_from_slice(data.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().current.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.0.lock();
        for _ in 0..2 {
            disk.record_image();
        }
        disk.synchronized = disk.current.clone();
        disk.unsynchronized.clear();
        disk.record_image();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = offset as usize;
        let mut disk = self.0.lock();
        disk.current[offset..offset + data.len()].copy_from_slice(data);
        disk.unsynchronized.push((offset, data.to_vec()));
        Ok(())
    }
}
