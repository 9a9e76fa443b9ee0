//! Fills a store with clients and grants.

use portcullis_state_store::records::{Change, KeyedRecord, RecordStore, Table, Write};

/// The number of writes of one change.
const WRITES: usize = 5_000;
/// The length of the hash that begins the keys of an index.
const HASH: usize = 16;

/// How the key of a copy differs.
#[derive(Clone, Copy)]
enum Key {
    /// The key is an identifier.
    Id,
    /// The key is a hash and the identifier of a grant.
    Index,
    /// The key is a time of 8 bytes and the identifier of a client.
    Time,
}

/// Adds copies of the only client and the only grant of a store, with all their records. A seal is
/// bound to its key, so that a copy cannot be opened; it has the size of a record that can.
pub(crate) async fn seed(records: &dyn RecordStore, clients: usize, grants: usize) {
    for (table, key, count) in [
        ("broker_clients", Key::Id, clients),
        ("broker_unused_clients", Key::Time, clients),
        ("broker_grants", Key::Id, grants),
        ("broker_sign_ins", Key::Id, grants),
        ("broker_grants_of_users", Key::Index, grants),
        ("broker_grants_of_sign_ins", Key::Index, grants),
    ] {
        let table = Table(table);
        let originals = records.scan(table, &[], None, 4).await.expect("records");
        for original in originals {
            copy(records, table, key, &original, count).await;
        }
    }
}

async fn copy(
    records: &dyn RecordStore,
    table: Table,
    key: Key,
    original: &KeyedRecord,
    count: usize,
) {
    let mut number = 0;
    while number < count {
        let end = count.min(number + WRITES);
        let put = |number| Write::Put {
            table,
            key: key.of_copy(&original.0, number),
            record: original.1.clone(),
        };
        let change = Change {
            conditions: Vec::new(),
            writes: (number..end).map(put).collect(),
        };
        records.commit(change).await.expect("a change");
        number = end;
    }
}

impl Key {
    /// Returns a key of the same length, which differs for each number.
    fn of_copy(self, original: &[u8], number: usize) -> Box<[u8]> {
        let mut key = original.to_vec();
        let id = match self {
            Self::Id => 0,
            Self::Index => HASH,
            Self::Time => size_of::<u64>(),
        };
        if matches!(self, Self::Index) {
            // As spread as hashes are.
            let spread = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            key[..8].copy_from_slice(&spread.to_be_bytes());
        }
        let digits = format!("{number:08}");
        key[id..id + digits.len()].copy_from_slice(digits.as_bytes());
        key.into()
    }
}
