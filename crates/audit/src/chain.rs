//! The keyed chain of the records: each record has a sequence number and a MAC over the previous
//! MAC and itself.
//!
//! A record `{…}` becomes `{…,"seq":7,"mac":"…"}`. The MAC is HMAC-SHA-256 over the 32 bytes of the
//! previous MAC and the bytes of the line before `,"mac":`. The previous MAC of the first record is
//! 32 zeros. Without the key, a record can be neither changed nor inserted, removed or moved. Only
//! the removal of the last records cannot be seen in the trail itself: a later head, which the log
//! contains, shows it.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::{HeadError, KeysError, MAX_KEYS, MIN_SECRET};

/// The salt and the purpose of the derivation of a key from its secret (RFC 5869).
const SALT: &[u8] = b"portcullis audit trail, form 1";
const PURPOSE: &[u8] = b"record chain";
/// The length of a MAC as text.
const MAC_TEXT: usize = 43;
/// The members that the chain adds.
const SEQ: &[u8] = b",\"seq\":";
const MAC: &[u8] = b",\"mac\":\"";
const END: &[u8] = b"\"}";

pub(crate) type RecordMac = [u8; 32];

/// The keys of the chain: one for new records, and former ones for verification. `Debug` does not
/// show them.
///
/// ```
/// use portcullis_audit::{ChainKeys, KeysError};
///
/// // A generated secret, and a former one.
/// assert!(ChainKeys::parse("Zm9yIG5ldyByZWNvcmRzLCB0aGlydHktdHdvIGJ5dGVz\nYSBmb3JtZXIga2V5LCB0aGlydHktdHdvIGJ5dGVzIGxvbmc=").is_ok());
/// assert_eq!(ChainKeys::parse("hunter2").unwrap_err(), KeysError::TooShort(1));
/// ```
#[derive(Clone)]
pub struct ChainKeys(Vec<ChainKey>);

/// A key of the chain, derived from a secret with HKDF-SHA256.
#[derive(Clone)]
pub(super) struct ChainKey(Hmac<Sha256>);

/// The end of the chain: the sequence number and the MAC of a record. The default is before the
/// first record. Its text is `SEQ:MAC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The sequence number of the record.
    pub seq: u64,
    /// The MAC of the record.
    pub mac: [u8; 32],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ChainedLine<'a> {
    /// The part that the MAC authenticates.
    pub(super) authenticated: &'a [u8],
    pub(super) head: Head,
}

/// The chain of a trail that is being written. Without a key, records are written as they are.
pub(super) struct Chain {
    key: Option<ChainKey>,
    head: Head,
}

impl ChainKeys {
    /// Parses secrets, one per line: that of new records first.
    ///
    /// # Errors
    /// Fails when there is none, one is too short, or there are too many. The message contains no
    /// part of a secret.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let lines = text
            .lines()
            .map(str::trim)
            .enumerate()
            .filter(|(_, line)| !line.is_empty());
        let keys = lines.map(|(number, line)| {
            if line.len() < MIN_SECRET {
                return Err(KeysError::TooShort(number + 1));
            }
            ChainKey::derive(line.as_bytes()).ok_or(KeysError::Underivable)
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        match keys.len() {
            0 => Err(KeysError::Empty),
            1..=MAX_KEYS => Ok(Self(keys)),
            _ => Err(KeysError::TooMany),
        }
    }

    /// Returns the key of new records.
    pub(super) fn current(&self) -> Option<&ChainKey> {
        self.0.first()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ChainKey> {
        self.0.iter()
    }
}

impl fmt::Debug for ChainKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainKeys").finish_non_exhaustive()
    }
}

impl ChainKey {
    fn derive(secret: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(SALT), secret)
            .expand(PURPOSE, &mut *key)
            .ok()?;
        Hmac::new_from_slice(&*key).ok().map(Self)
    }

    pub(super) fn mac(&self, previous: &RecordMac, authenticated: &[u8]) -> RecordMac {
        let mut mac = self.0.clone();
        mac.update(previous);
        mac.update(authenticated);
        mac.finalize().into_bytes().into()
    }
}

impl Chain {
    /// Continues after `head`.
    pub(super) fn new(key: Option<ChainKey>, head: Head) -> Self {
        Self { key, head }
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns the head, which is that of the last appended record.
    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// Takes back the records after `head`.
    pub(super) fn rewind(&mut self, head: Head) {
        self.head = head;
    }

    /// Appends a record, which is a JSON object with its newline, as a line of the chain.
    pub(super) fn append(&mut self, record: &[u8], out: &mut Vec<u8>) {
        let Some((key, object)) = self.key.as_ref().zip(record.strip_suffix(b"}\n")) else {
            out.extend_from_slice(record);
            return;
        };
        let start = out.len();
        // At one record per nanosecond, the number lasts for centuries.
        let seq = self.head.seq.saturating_add(1);
        out.extend_from_slice(object);
        out.extend_from_slice(SEQ);
        out.extend_from_slice(itoa::Buffer::new().format(seq).as_bytes());
        let mac = key.mac(&self.head.mac, &out[start..]);
        out.extend_from_slice(MAC);
        out.extend_from_slice(URL_SAFE_NO_PAD.encode(mac).as_bytes());
        out.extend_from_slice(END);
        out.push(b'\n');
        self.head = Head { seq, mac };
    }
}

impl<'a> ChainedLine<'a> {
    /// Parses a line without its newline. Does not verify the MAC. Returns `None` if it is not a
    /// line of a chain.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let (before, mac) = line
            .strip_suffix(END)?
            .split_at_checked(line.len().checked_sub(END.len() + MAC_TEXT)?)?;
        let authenticated = before.strip_suffix(MAC)?;
        let digits = authenticated
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (object, seq) = authenticated.split_at(authenticated.len() - digits);
        let is_object = object.starts_with(b"{") && object.ends_with(SEQ);
        let seq: u64 = std::str::from_utf8(seq)
            .ok()?
            .parse()
            .ok()
            .filter(|seq| *seq > 0 && is_object)?;
        Some(Self {
            authenticated,
            head: Head {
                seq,
                mac: decode_mac(mac)?,
            },
        })
    }

    /// Returns whether the key made this line, after this head.
    pub(super) fn follows(&self, previous: &Head, key: &ChainKey) -> bool {
        previous.seq.checked_add(1) == Some(self.head.seq)
            && key.mac(&previous.mac, self.authenticated) == self.head.mac
    }
}

fn decode_mac(text: &[u8]) -> Option<RecordMac> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// As in the log, `SEQ:MAC`.
impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, URL_SAFE_NO_PAD.encode(self.mac))
    }
}

impl FromStr for Head {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (seq, mac) = text.split_once(':')?;
            Some(Self {
                seq: seq.parse().ok()?,
                mac: decode_mac(mac.as_bytes())?,
            })
        };
        parse().ok_or(HeadError)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(secret: &str) -> ChainKey {
        ChainKeys::parse(&secret.repeat(32))
            .unwrap()
            .current()
            .unwrap()
            .clone()
    }

    fn chained(records: &[&str]) -> String {
        let mut chain = Chain::new(Some(key("k")), Head::default());
        let mut out = Vec::new();
        for record in records {
            chain.append(format!("{record}\n").as_bytes(), &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    /// J4: each MAC depends on the record and on the one before it; the value was computed with
    /// Python's `hmac`.
    #[test]
    fn records_are_chained() {
        let text = chained(&[r#"{"a":1}"#, r#"{"a":1}"#]);
        let lines: Vec<_> = text
            .lines()
            .map(|line| ChainedLine::parse(line.as_bytes()).unwrap())
            .collect();
        assert_eq!(lines[0].authenticated, br#"{"a":1,"seq":1"#);
        assert_eq!(
            lines[0].head.to_string(),
            "1:VgwlMLp0lCI36YvlqA3rVFwgcPLnSNhw6EdYEJ8bVr8"
        );
        assert!(lines[0].follows(&Head::default(), &key("k")));
        assert!(lines[1].follows(&lines[0].head, &key("k")));
        assert!(!lines[1].follows(&Head::default(), &key("k")));
        assert!(!lines[1].follows(&lines[0].head, &key("l")));
        let moved = Head {
            seq: 1,
            mac: lines[1].head.mac,
        };
        assert!(!lines[1].follows(&moved, &key("k")));
        assert!(
            serde_json::from_str::<serde_json::Value>(text.lines().next().unwrap()).unwrap()["mac"]
                .is_string()
        );
    }

    #[test]
    fn other_lines_are_not_parsed() {
        let line = chained(&[r#"{"a":1}"#]);
        let line = line.trim_end();
        for end in 0..line.len() {
            assert!(
                ChainedLine::parse(&line.as_bytes()[..end]).is_none(),
                "{end}"
            );
        }
        for (from, to) in [
            ("\"seq\":1", "\"seq\":0"),
            ("\"seq\":1", "\"seq\":"),
            ("{", "["),
            (",\"seq", ";\"seq"),
        ] {
            assert!(
                ChainedLine::parse(line.replace(from, to).as_bytes()).is_none(),
                "{to}"
            );
        }
        assert!(
            ChainedLine::parse(
                line.replace("\"seq\":1", "\"seq\":99999999999999999999")
                    .as_bytes()
            )
            .is_none()
        );
    }

    #[test]
    fn keys_are_secrets_of_one_line() {
        let parse = |text: &str| {
            ChainKeys::parse(text)
                .map(|keys| keys.0.len())
                .map_err(|error| error.to_string())
        };
        let secret = "s".repeat(32);
        assert_eq!(parse(&format!("\n {secret}\r\n\n{secret}2")), Ok(2));
        assert!(parse("\n").unwrap_err().contains("no key"));
        let error = parse(&format!("{secret}\nhunter2")).unwrap_err();
        assert!(error.starts_with("line 2 "), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        assert!(
            parse(&format!("{secret}\n").repeat(17))
                .unwrap_err()
                .contains("more than 16")
        );
    }

    proptest! {
        /// J4: no change of a line, and no other text, is accepted as a line of the chain.
        #[test]
        fn changed_lines_do_not_verify(at in any::<prop::sample::Index>(), byte: u8) {
            let text = chained(&[r#"{"event":"decision","a":"b\""}"#]);
            let mut line = text.trim_end().as_bytes().to_vec();
            let at = at.index(line.len());
            prop_assume!(line[at] != byte);
            line[at] = byte;
            let verifies = ChainedLine::parse(&line).is_some_and(|line| line.follows(&Head::default(), &key("k")));
            prop_assert!(!verifies);
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes: Vec<u8>, text: String) {
            let _ = ChainedLine::parse(&bytes);
            let _ = text.parse::<Head>();
        }

        #[test]
        fn heads_are_read_as_written(seq: u64, mac: [u8; 32]) {
            let head = Head { seq, mac };
            prop_assert_eq!(head.to_string().parse(), Ok(head));
        }
    }
}
