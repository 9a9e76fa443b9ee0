//! [`Commands`]: the scripts and the keys of the records.
//!
//! A table is a hash from keys to stored values, which begin with their expiry, and a sorted set of
//! its keys for ordered scans. One sorted set has the expiries of all records, for sweeps: a key
//! that Redis lets expire by itself would stay in the other sets, and would expire by another clock
//! than that of the replicas.

use portcullis_metadata::UnixTime;
use redis::{ErrorKind, RedisError, Script, cmd};
use zeroize::Zeroizing;

use super::{
    super::{Change, Condition, KeyedRecord, Outcome, RecordError, StoredRecord, Table, Write},
    BATCH,
    link::Redis,
};
use crate::redis::scripts;

/// The number of bytes of an expiry.
const EXPIRY: usize = 8;

pub(super) struct Commands {
    /// The first part of all keys.
    name: String,
    change: Script,
    scan: Script,
    sweep: Script,
}

impl Commands {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            change: Script::new(include_str!("change.lua")),
            scan: Script::new(include_str!("scan.lua")),
            sweep: Script::new(include_str!("sweep.lua")),
        }
    }

    pub(super) async fn get(
        &self,
        redis: &mut Redis,
        table: Table,
        key: &[u8],
    ) -> Result<Option<StoredRecord>, RecordError> {
        let mut command = cmd("HGET");
        command.arg(self.records(table.0)).arg(key);
        let stored: Option<Vec<u8>> = command.query_async(redis).await?;
        stored.map(decode).transpose()
    }

    pub(super) async fn count(&self, redis: &mut Redis, table: Table) -> Result<u64, RecordError> {
        let mut command = cmd("HLEN");
        command.arg(self.records(table.0));
        Ok(command.query_async(redis).await?)
    }

    pub(super) async fn change(
        &self,
        redis: &mut Redis,
        change: &Change,
        now: UnixTime,
    ) -> Result<Outcome, RecordError> {
        let mut tables = Tables::default();
        let mut operations = Vec::new();
        for condition in &change.conditions {
            operations.push(match condition {
                Condition::Value {
                    table,
                    key,
                    expected: Some(expected),
                } => (
                    "value",
                    tables.number(table.0),
                    key.to_vec(),
                    b"1".to_vec(),
                    Zeroizing::clone(expected),
                ),
                Condition::Value {
                    table,
                    key,
                    expected: None,
                } => (
                    "value",
                    tables.number(table.0),
                    key.to_vec(),
                    b"0".to_vec(),
                    Zeroizing::default(),
                ),
                Condition::Below { table, max } => (
                    "below",
                    tables.number(table.0),
                    max.to_string().into_bytes(),
                    Vec::new(),
                    Zeroizing::default(),
                ),
            });
        }
        for write in &change.writes {
            operations.push(match write {
                Write::Put { table, key, record } => (
                    "put",
                    tables.number(table.0),
                    key.to_vec(),
                    record.expires.as_millis().to_string().into_bytes(),
                    encode(record),
                ),
                Write::Delete { table, key } => (
                    "delete",
                    tables.number(table.0),
                    key.to_vec(),
                    Vec::new(),
                    Zeroizing::default(),
                ),
            });
        }
        let mut script = self.change.prepare_invoke();
        script.key(self.keys_of(&tables));
        script.arg(now.as_millis()).arg(change.conditions.len());
        script.arg(&tables.0);
        for (operation, table, first, second, value) in &operations {
            script
                .arg(*operation)
                .arg(*table)
                .arg(first.as_slice())
                .arg(second.as_slice())
                .arg(value.as_slice());
        }
        match scripts::run(&script, redis).await? {
            0_u8 => Ok(Outcome::Committed),
            1 => Ok(Outcome::Conflict),
            2 => Ok(Outcome::Full),
            _ => Err(unexpected("a change has another result")),
        }
    }

    /// Returns at most `count` records, also expired ones.
    pub(super) async fn scan(
        &self,
        redis: &mut Redis,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Vec<KeyedRecord>, RecordError> {
        let start = match after {
            Some(after) if after >= prefix => [b"(", after].concat(),
            _ => [b"[", prefix].concat(),
        };
        let mut script = self.scan.prepare_invoke();
        script
            .key(self.records(table.0))
            .key(self.sorted_keys(table.0))
            .arg(start)
            .arg(end_of(prefix))
            .arg(count);
        let mut found: std::vec::IntoIter<Vec<u8>> = scripts::run::<Vec<Vec<u8>>>(&script, redis)
            .await?
            .into_iter();
        let mut records = Vec::with_capacity(found.len() / 2);
        while let (Some(key), Some(stored)) = (found.next(), found.next()) {
            records.push((key.into_boxed_slice(), decode(stored)?));
        }
        Ok(records)
    }

    /// Removes at most [`BATCH`] expired records. Returns how many there were.
    pub(super) async fn sweep(
        &self,
        redis: &mut Redis,
        now: UnixTime,
    ) -> Result<usize, RecordError> {
        let mut command = cmd("ZRANGEBYSCORE");
        command
            .arg(self.expiries())
            .arg("-inf")
            .arg(now.as_millis());
        command.arg("LIMIT").arg(0).arg(BATCH);
        let expired: Vec<Vec<u8>> = command.query_async(redis).await?;
        if expired.is_empty() {
            return Ok(0);
        }
        let mut tables = Tables::default();
        let mut entries = Vec::with_capacity(expired.len());
        for entry in &expired {
            let (name, key) = split_entry(entry)?;
            entries.push((tables.number(name), key, entry.as_slice()));
        }
        let mut script = self.sweep.prepare_invoke();
        script.key(self.keys_of(&tables)).arg(now.as_millis());
        for (table, key, entry) in entries {
            script.arg(table).arg(key).arg(entry);
        }
        let _: u8 = scripts::run(&script, redis).await?;
        Ok(expired.len())
    }

    fn records(&self, table: &str) -> String {
        format!("{}:{table}", self.name)
    }

    fn sorted_keys(&self, table: &str) -> String {
        format!("{}:{table}:keys", self.name)
    }

    /// No [`Table`] has a hyphen in its name.
    fn expiries(&self) -> String {
        format!("{}:all-expiries", self.name)
    }

    /// Returns the keys of a script that changes these tables.
    fn keys_of(&self, tables: &Tables<'_>) -> Vec<String> {
        let of_table = |table: &&str| [self.records(table), self.sorted_keys(table)];
        [self.expiries()]
            .into_iter()
            .chain(tables.0.iter().flat_map(of_table))
            .collect()
    }
}

/// The tables that a script changes.
#[derive(Default)]
struct Tables<'a>(Vec<&'a str>);

impl<'a> Tables<'a> {
    /// Returns the number of a table, counted from 1.
    fn number(&mut self, name: &'a str) -> usize {
        let known = self.0.iter().position(|table| *table == name);
        let index = known.unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        });
        index + 1
    }
}

fn encode(record: &StoredRecord) -> Zeroizing<Vec<u8>> {
    let mut stored = Zeroizing::new(Vec::with_capacity(EXPIRY + record.value.len()));
    stored.extend_from_slice(&record.expires.as_millis().to_be_bytes());
    stored.extend_from_slice(&record.value);
    stored
}

fn decode(stored: Vec<u8>) -> Result<StoredRecord, RecordError> {
    let stored = Zeroizing::new(stored);
    let (expires, value) = stored
        .split_first_chunk::<EXPIRY>()
        .ok_or_else(|| unexpected("a record has no expiry"))?;
    Ok(StoredRecord {
        value: Zeroizing::new(value.to_vec()),
        expires: UnixTime::from_millis(u64::from_be_bytes(*expires)),
    })
}

/// Returns the table and the key of a member of the set of expiries.
fn split_entry(entry: &[u8]) -> Result<(&str, &[u8]), RecordError> {
    let split = || {
        let end = entry.iter().position(|byte| *byte == 0)?;
        let (name, key) = entry.split_at(end);
        Some((str::from_utf8(name).ok()?, key.get(1..)?))
    };
    split().ok_or_else(|| unexpected("an expiry names no record"))
}

/// Returns the end of the range of the keys that begin with a prefix, for ZRANGEBYLEX.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let without_max = prefix.iter().rposition(|byte| *byte != u8::MAX);
    match without_max {
        Some(last) => {
            let mut end = [b"(", &prefix[..=last]].concat();
            end[last + 1] += 1;
            end
        }
        None => b"+".to_vec(),
    }
}

fn unexpected(what: &'static str) -> RecordError {
    RedisError::from((ErrorKind::UnexpectedReturnType, what)).into()
}
