//! Sizes as people write them, such as `10MB`.

const KIB: u64 = 1 << 10;

/// Returns the number of bytes of a number with a unit, such as `10MB` or `512 KiB`. `None` for
/// other text, and without a unit. All units are powers of 1024, as the limits of this program are.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim_start().to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => KIB * KIB,
        "g" | "gb" | "gib" => KIB * KIB * KIB,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Returns what to write instead of a number of bytes below its range, if it is probably a number
/// of MiB. Empty otherwise.
pub(super) fn if_mebibytes(value: u64, most: u64) -> String {
    match value.checked_mul(KIB * KIB) {
        Some(bytes) if (1..=most).contains(&bytes) => {
            format!("; write {bytes} for {value} MiB")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_converted() {
        for (text, expected) in [
            ("10MB", Some(10 << 20)),
            (" 512 KiB ", Some(512 << 10)),
            ("1g", Some(1 << 30)),
            ("7 bytes", Some(7)),
            ("10", None),
            ("MB", None),
            ("1.5MB", None),
            ("-1MB", None),
            ("10ms", None),
            ("99999999999999999999MB", None),
            ("18446744073709551615k", None),
            ("", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
        assert_eq!(if_mebibytes(4, 1 << 30), "; write 4194304 for 4 MiB");
        assert_eq!(if_mebibytes(0, 1 << 30), "");
        assert_eq!(if_mebibytes(u64::MAX, 1 << 30), "");
    }
}
