/// Returns bytes as lower-case hexadecimal digits, two for each byte (base16, RFC 4648 section 8,
/// in lower case).
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    bytes
        .iter()
        .flat_map(|byte| {
            [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 0x0f)],
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hexadecimal(&[]), "");
        assert_eq!(hexadecimal(&[0x00, 0x0f, 0x9a, 0xff]), "000f9aff");
        let every_byte: Vec<u8> = (0..=255).collect();
        assert_eq!(
            hexadecimal(&every_byte),
            every_byte
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        );
    }
}
