//! Values that are a name, or a table with exactly one of several members: `"demo"` or
//! `{ http = "…" }`. serde's own enums ignore further members.

use std::fmt;

use serde::{
    Deserializer,
    de::{self, MapAccess, Visitor},
};

/// Reads a value with one of these forms. `make` receives the form and, from a table, its text, and
/// returns `None` if the form has none, or needs one.
///
/// Fails for another form, and for a table with several members.
pub(super) fn read<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    forms: &'static [&'static str],
    make: fn(&str, Option<String>) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(OneForm { forms, make })
}

struct OneForm<T> {
    forms: &'static [&'static str],
    make: fn(&str, Option<String>) -> Option<T>,
}

impl<'de, T> Visitor<'de> for OneForm<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", self.forms.join(", "))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        (self.make)(name, None).ok_or_else(|| E::unknown_variant(name, self.forms))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<T, A::Error> {
        let Some(form) = members.next_key::<String>()? else {
            return Err(de::Error::custom(format!(
                "the table is empty; write one of {}",
                self.forms.join(", ")
            )));
        };
        if !self.forms.contains(&&*form) {
            return Err(de::Error::unknown_variant(&form, self.forms));
        }
        let text = members.next_value()?;
        match members.next_key::<String>()? {
            Some(other) if self.forms.contains(&&*other) => {
                return Err(de::Error::custom(format!(
                    "`{form}` and `{other}` are both set; remove one"
                )));
            }
            Some(other) => return Err(de::Error::unknown_variant(&other, self.forms)),
            None => {}
        }
        (self.make)(&form, Some(text)).ok_or_else(|| {
            de::Error::custom(format!("`{form}` has no value; write it as a string"))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::file::{AuditTarget, Upstream};

    fn upstream(json: &str) -> Result<Upstream, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// J9: a table with two members is rejected, also if each is valid.
    #[test]
    fn a_table_has_one_member() {
        let http = Upstream::Http("a".to_owned());
        assert_eq!(upstream(r#""demo""#), Ok(Upstream::Demo));
        assert_eq!(upstream(r#"{"http":"a"}"#), Ok(http));
        for (json, error) in [
            (
                r#"{"http":"a","unix":"b"}"#,
                "`http` and `unix` are both set; remove one",
            ),
            (r#"{"http":"a","path":"b"}"#, "unknown variant `path`"),
            (r#"{"url":"a"}"#, "unknown variant `url`"),
            (
                r#"{"demo":"a"}"#,
                "`demo` has no value; write it as a string",
            ),
            (r#""http""#, "unknown variant `http`"),
            ("{}", "the table is empty; write one of demo, http, unix"),
            ("5", "expected one of demo, http, unix"),
        ] {
            let found = upstream(json).unwrap_err();
            assert!(found.contains(error), "{json}: {found}");
        }
        let target = serde_json::from_str::<AuditTarget>(r#"{"file":"a","mode":"b"}"#);
        assert!(target.is_err());
        assert_eq!(
            serde_json::from_str::<AuditTarget>(r#"{"file":"a"}"#).unwrap(),
            AuditTarget::File("a".into())
        );
    }
}
