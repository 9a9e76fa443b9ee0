//! [`Color`]: colors with enough contrast for everybody (WCAG 2.2).

use std::fmt;

/// A color of the sRGB space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Color(pub(super) [u8; 3]);

impl Color {
    pub(super) const BLACK: Self = Self([0; 3]);
    pub(super) const WHITE: Self = Self([255; 3]);

    /// Returns the color of text on this one: black or white. The contrast is at least 4.58.
    pub(super) fn text(self) -> Self {
        if self.contrast(Self::WHITE) >= self.contrast(Self::BLACK) {
            Self::WHITE
        } else {
            Self::BLACK
        }
    }

    /// Returns a color that differs from this one and has more contrast to its text.
    pub(super) fn emphasized(self) -> Self {
        let towards = if self.text() == Self::WHITE { 0 } else { 255 };
        // A change of a sixth is seen, and the color remains.
        Self(self.0.map(|part| {
            let mixed = (u16::from(part) * 5 + towards) / 6;
            u8::try_from(mixed).unwrap_or(part)
        }))
    }

    /// Returns the contrast ratio, from 1 to 21.
    pub(super) fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// Returns the relative luminance, from 0 to 1.
    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

/// Writes `#` and six hexadecimal digits.
impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_legible_on_every_color() {
        let levels = || (0..=255_u8).step_by(15);
        for red in levels() {
            for green in levels() {
                for blue in levels() {
                    let color = Color([red, green, blue]);
                    let text = color.text();
                    assert!(color.contrast(text) >= 4.5, "{color}");
                    assert!(
                        color.emphasized().contrast(text) >= color.contrast(text),
                        "{color}"
                    );
                }
            }
        }
    }

    #[test]
    fn contrast_is_that_of_the_definition() {
        assert!((Color::WHITE.contrast(Color::BLACK) - 21.0).abs() < 0.001);
        assert!((Color([0x77; 3]).contrast(Color::WHITE) - 4.48).abs() < 0.01);
    }

    #[test]
    fn a_bright_color_has_black_text_and_a_dark_one_white() {
        assert_eq!(Color([255, 220, 0]).text(), Color::BLACK);
        assert_eq!(Color([0x24, 0x56, 0xc9]).text(), Color::WHITE);
    }
}
