//! Bodies that are not UTF-8, or whose headers declare another encoding.

use super::{Case, call, raw};

const WIPE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"admin_wipe","arguments":{}}}"#;

/// Content types that a reader could interpret as JSON in another character encoding.
pub(in crate::readers) const CONTENT_TYPES: [&str; 26] = [
    "application/json; charset*0=utf-7",
    "application/json; charset*0=\"utf-7\"",
    "application/json; charset*0=utf;charset*1=-7",
    "application/json; charset*=utf-8''utf-7",
    "application/json; charset*=us-ascii'en'utf-7",
    "application/json; charset*0*=utf-8''utf-7",
    "application/json; charset*1=utf-7",
    "application/json;charset=utf-7",
    "application/json; charset=utf-8; charset*0=utf-7",
    "application/json; charset*0=utf-7; charset=utf-8",
    "application/json; charset=utf-8; charset=utf-7",
    "application/json; charset=utf-7; charset=utf-8",
    "application/json; charset=\"utf-7\"",
    "application/json; charset=\"utf-\\7\"",
    "application/json; CHARSET=UTF-7",
    "application/json; charset =utf-7",
    "application/json; charset= utf-7",
    "application/json; a=\"; charset=utf-7\"",
    "application/json; a=\"b\\\"; charset=utf-7; c=\"d\"",
    "application/json, text/plain; charset=utf-7",
    "application/json;; charset=utf-7",
    "application/json; charset=utf-16",
    "application/json; charset=cp037",
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    "application/json (comment); charset=utf-7",
];

/// `admin_wipe` in UTF-7 (RFC 2152).
pub(in crate::readers) const UTF_7_NAME: &str = "+AGE-dmin_wipe";

/// Messages in other encodings, and with other content types.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for content_type in CONTENT_TYPES {
        cases.push(call("UTF-7", UTF_7_NAME).header("content-type", content_type));
        cases.push(call("a content type", "echo").header("content-type", content_type));
        let ebcdic = WIPE.bytes().map(|byte| byte ^ 0x40).collect::<Vec<_>>();
        cases.push(Case::new("another code page", ebcdic).header("content-type", content_type));
    }
    for content_type in [
        "text/plain",
        "application/jsonp",
        "application/vnd.a+json",
        "application/json\t",
        "",
    ] {
        cases.push(call("a content type", "echo").header("content-type", content_type));
    }
    cases.push(
        call("two content types", UTF_7_NAME)
            .header("content-type", "application/json")
            .header("content-type", "application/json; charset=utf-7"),
    );
    for coding in [
        "gzip",
        "deflate",
        "br",
        "zstd",
        "identity",
        "utf-7",
        "x-gzip, identity",
    ] {
        cases.push(call("a content coding", "echo").header("content-encoding", coding));
    }
    cases.push(Case::new("stored gzip", gzip(WIPE.as_bytes())).header("content-encoding", "gzip"));
    cases.push(call("a transfer coding", "echo").header("content-transfer-encoding", "base64"));
    cases.push(call("a charset of its own", UTF_7_NAME).header("charset", "utf-7"));
    cases.extend(other_encodings());
    cases.extend(damaged());
    cases
}

/// Messages in UTF-16 and UTF-32.
fn other_encodings() -> Vec<Case> {
    let little = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>()
    };
    let big = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect::<Vec<_>>()
    };
    let wide = |text: &str| {
        text.chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect::<Vec<_>>()
    };
    let marked = format!("\u{feff}{WIPE}");
    vec![
        Case::new("UTF-16, little end first", little(WIPE)),
        Case::new("UTF-16, big end first", big(WIPE)),
        Case::new("UTF-16 with a byte order mark", little(&marked)),
        Case::new("UTF-16 with a byte order mark", big(&marked)),
        Case::new("UTF-32", wide(WIPE)),
        Case::new("UTF-32 with a byte order mark", wide(&marked)),
        Case::new("a byte order mark", marked.clone()),
        Case::new("two byte order marks", format!("\u{feff}{marked}")),
        Case::new("a byte order mark behind a blank", format!(" {marked}")),
        Case::new("a byte order mark at the end", format!("{WIPE}\u{feff}")),
        Case::new(
            "a byte order mark inside",
            WIPE.replacen(",\"method\"", ",\u{feff}\"method\"", 1),
        ),
    ]
}

/// Bytes that are not UTF-8, and whitespace that JSON does not allow.
fn damaged() -> Vec<Case> {
    let mut cases = Vec::new();
    for damage in [
        &b"\xff"[..],
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc3",
        b"\x80",
    ] {
        for (before, after) in [("admin_", "wipe"), ("", "admin_wipe"), ("echo", "")] {
            let mut name = raw(
                "damaged UTF-8",
                "tools/call",
                &format!(r#"{{"name":"{before}@{after}"}}"#),
            );
            if let Some(at) = name.body.iter().position(|byte| *byte == b'@') {
                name.body.splice(at..=at, damage.iter().copied());
            }
            cases.push(name);
        }
    }
    for blank in [
        "\u{b}", "\u{c}", "\u{a0}", "\u{2028}", "\u{0}", "\u{1e}", "\u{3000}",
    ] {
        cases.push(Case::new("a blank before", format!("{blank}{WIPE}")));
        cases.push(Case::new("a blank behind", format!("{WIPE}{blank}")));
        cases.push(Case::new(
            "a blank inside",
            WIPE.replacen(",\"method\"", &format!(",{blank}\"method\""), 1),
        ));
    }
    for prefix in ["data: ", ")]}',\n", "while(1);", "\u{1e}", "//\n", "#\n"] {
        cases.push(Case::new("a prefix", format!("{prefix}{WIPE}")));
    }
    cases.push(Case::new("nothing", ""));
    cases.push(Case::new(
        "a multipart form",
        format!("--b\r\ncontent-type: application/json\r\n\r\n{WIPE}\r\n--b--\r\n"),
    ));
    cases
}

/// Returns a gzip member of one stored block (RFC 1951 section 3.2.4, RFC 1952).
fn gzip(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    let mut member = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01".to_vec();
    member.extend(length.to_le_bytes());
    member.extend((!length).to_le_bytes());
    member.extend(content);
    member.extend(crc(content).to_le_bytes());
    member.extend(u32::from(length).to_le_bytes());
    member
}

/// Returns the CRC-32 of gzip.
fn crc(content: &[u8]) -> u32 {
    let step = |sum: u32, _| {
        if sum & 1 == 1 {
            (sum >> 1) ^ 0xedb8_8320
        } else {
            sum >> 1
        }
    };
    !content.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), step)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
    }
}
