//! Names of types in the words of TOML, for errors.

use figment::error::Actual;

/// Returns the type of a value in the words of TOML. The value itself may be a misplaced secret.
pub(super) fn type_of(found: &Actual) -> &'static str {
    match found {
        Actual::Bool(_) => "a boolean",
        Actual::Unsigned(_) | Actual::Signed(_) => "an integer",
        Actual::Float(_) => "a floating-point number",
        Actual::Char(_) | Actual::Str(_) => "a string",
        Actual::Seq => "an array",
        Actual::Map | Actual::Enum => "a table",
        _ => "something else",
    }
}

/// Returns an expected type of serde in the words of TOML.
pub(super) fn expected_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a non-negative integer",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "path string" => "a string",
        expected if expected.starts_with("struct ") || expected == "a map" => "a table",
        expected if expected == "enum" || expected.starts_with("enum ") => {
            "one of its names, or a table"
        }
        expected => expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_toml() {
        for (actual, name) in [
            (Actual::Bool(true), "a boolean"),
            (Actual::Unsigned(1), "an integer"),
            (Actual::Signed(-1), "an integer"),
            (Actual::Float(0.5), "a floating-point number"),
            (Actual::Str("hunter2".to_owned()), "a string"),
            (Actual::Seq, "an array"),
            (Actual::Map, "a table"),
        ] {
            assert_eq!(type_of(&actual), name);
        }
        for (expected, name) in [
            ("usize", "a non-negative integer"),
            ("i64", "an integer"),
            ("f64", "a number"),
            ("a boolean", "true or false"),
            ("a sequence", "an array"),
            ("path string", "a string"),
            ("struct Limits", "a table"),
            ("enum Upstream", "one of its names, or a table"),
            ("a duration with a unit", "a duration with a unit"),
        ] {
            assert_eq!(expected_type(expected), name);
        }
    }
}
