//! [`Generation`]: the name of the data of one Redis server process.

use std::fmt;

use portcullis_metadata::syntax::hexadecimal;

/// Names the data of a Redis server. A server that lost its data, or that may have lost its last
/// writes, has another one.
///
/// Random, so that no two processes choose the same. The text form is 32 lowercase hexadecimal
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(pub(crate) [u8; 16]);

impl Generation {
    /// Returns the generation with this text; `None` if the text is anything but 32 lowercase
    /// hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_well_formed = text.len() == 32
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = is_well_formed.then(|| u128::from_str_radix(text, 16).ok())??;
        Some(Self(number.to_be_bytes()))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_parsed_from_its_text() {
        for generation in [
            Generation([0; 16]),
            Generation([0x0f; 16]),
            Generation([0xff; 16]),
        ] {
            assert_eq!(Generation::parse(&generation.to_string()), Some(generation));
        }
    }

    /// Each text is rejected, including those that `u128::from_str_radix` accepts.
    #[test]
    fn other_texts_are_rejected() {
        let signed = format!("+{}", "1".repeat(31));
        let upper = "A".repeat(32);
        let long = "1".repeat(33);
        let other = "g".repeat(32);
        for text in ["", "0f", &signed, &upper, &long, &other] {
            assert_eq!(Generation::parse(text), None, "{text}");
        }
    }
}
