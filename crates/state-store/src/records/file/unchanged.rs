//! [`UnchangedFile`]: access to a file that keeps all changes in memory.

use std::{collections::HashMap, fs::File, io, os::unix::fs::FileExt as _};

use parking_lot::Mutex;
use redb::StorageBackend;

/// The size of the parts of which changed ones are kept, in bytes.
const BLOCK: u64 = 4096;

/// A file that is only read. What is written is kept in memory, in whole blocks.
#[derive(Debug)]
pub(super) struct UnchangedFile {
    file: File,
    content: Mutex<Content>,
}

#[derive(Debug)]
struct Content {
    length: u64,
    /// Where the part that is still that of the file ends.
    end_of_file: u64,
    changed: HashMap<u64, Box<[u8]>>,
}

impl UnchangedFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let content = Content {
            length,
            end_of_file: length,
            changed: HashMap::new(),
        };
        Ok(Self {
            file,
            content: Mutex::new(content),
        })
    }
}

impl Content {
    /// Returns a block for a change.
    fn block(&mut self, file: &File, number: u64) -> io::Result<&mut [u8]> {
        if !self.changed.contains_key(&number) {
            let mut block = vec![0; BLOCK as usize];
            self.read_file(file, number * BLOCK, &mut block)?;
            self.changed.insert(number, block.into());
        }
        let block = self.changed.get_mut(&number);
        block
            .map(|block| &mut **block)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Reads from the file, and zeros behind its end.
    fn read_file(&self, file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let rest = self.end_of_file.saturating_sub(offset);
        let in_file = usize::try_from(rest).map_or(out.len(), |rest| rest.min(out.len()));
        let (of_file, zeros) = out.split_at_mut(in_file);
        zeros.fill(0);
        file.read_exact_at(of_file, offset)
    }

    fn check_end(&self, offset: u64, length: usize) -> io::Result<()> {
        match offset.checked_add(length as u64) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl StorageBackend for UnchangedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let content = self.content.lock();
        content.check_end(offset, out.len())?;
        for (number, start, part) in parts(offset, out.len()) {
            let out = &mut out[part];
            match content.changed.get(&number) {
                Some(block) => out.copy_from_slice(&block[start..start + out.len()]),
                None => content.read_file(&self.file, number * BLOCK + start as u64, out)?,
            }
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut content = self.content.lock();
        content.length = length;
        content.end_of_file = content.end_of_file.min(length);
        // What is added later is zeros.
        content
            .changed
            .retain(|number, _| number.saturating_mul(BLOCK) < length);
        if let Some(block) = content.changed.get_mut(&(length / BLOCK)) {
            block[(length % BLOCK) as usize..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut content = self.content.lock();
        content.check_end(offset, data.len())?;
        for (number, start, part) in parts(offset, data.len()) {
            let data = &data[part];
            content.block(&self.file, number)?[start..start + data.len()].copy_from_slice(data);
        }
        Ok(())
    }
}

/// Returns the parts of a range in each block: the number of the block, where the part starts in
/// it, and where the part is in the range.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % BLOCK) as usize;
        let part = done..length.min(done + BLOCK as usize - start);
        done = part.end;
        (!part.is_empty()).then_some((at / BLOCK, start, part))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Operation {
        SetLength(u64),
        Write(u64, Vec<u8>),
    }

    fn operations() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (0..20_000_u64).prop_map(Operation::SetLength),
            (0..20_000_u64, prop::collection::vec(any::<u8>(), 0..9_000))
                .prop_map(|(offset, data)| Operation::Write(offset, data)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// It reads what a file would have after the same operations, and the file stays as it is.
        #[test]
        fn it_behaves_as_a_file(
            before in prop::collection::vec(any::<u8>(), 0..13_000),
            operations in prop::collection::vec(operations(), 0..12),
        ) {
            let path = tempfile::NamedTempFile::new().unwrap();
            fs::write(path.path(), &before).unwrap();
            let unchanged = UnchangedFile::new(File::open(path.path()).unwrap()).unwrap();
            let mut expected = before.clone();
            for operation in operations {
                match operation {
                    Operation::SetLength(length) => {
                        expected.resize(length as usize, 0);
                        unchanged.set_len(length).unwrap();
                    }
                    Operation::Write(offset, data) => {
                        let range = offset as usize..offset as usize + data.len();
                        let written = unchanged.write(offset, &data);
                        match expected.get_mut(range) {
                            Some(part) => {
                                written.unwrap();
                                part.copy_from_slice(&data);
                            }
                            None => prop_assert!(written.is_err()),
                        }
                    }
                }
                prop_assert_eq!(unchanged.len().unwrap(), expected.len() as u64);
                let mut read = vec![1; expected.len()];
                unchanged.read(0, &mut read).unwrap();
                prop_assert!(read == expected);
                prop_assert!(unchanged.read(1, &mut read).is_err() || read.is_empty());
            }
            prop_assert!(fs::read(path.path()).unwrap() == before);
        }
    }
}
