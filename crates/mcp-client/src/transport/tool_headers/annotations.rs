//! Finds the `x-mcp-header` annotations of a tool's input schema.

use std::{collections::HashSet, fmt};

use http::HeaderName;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use crate::transport::json::{self, Name};

/// A parameter of a tool whose value is also sent as a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnnotatedParameter {
    /// The header, `mcp-param-` and the annotation.
    pub(super) header: HeaderName,
    /// The names of the properties that lead from the arguments to the value.
    pub(super) path: Vec<String>,
}

/// Why the annotations of a schema are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnnotationError {
    #[error("its schema is nested too deeply")]
    TooDeep,
    #[error("it annotates a value that is not a property of the arguments")]
    NotAProperty,
    #[error("it annotates a parameter that is not a string, an integer or a boolean")]
    NotPrimitive,
    #[error("an annotation is not a header name")]
    InvalidName,
    #[error("two parameters have the same header")]
    DuplicateName,
    #[error("it annotates too many parameters, or one whose path is too long")]
    TooLarge,
    #[error("its definition cannot be read")]
    Unreadable,
}

/// The keyword of an annotation (2026-07-28, "Custom Headers from Tool Parameters").
const ANNOTATION: &str = "x-mcp-header";
/// The maximum depth of a schema. serde_json reads twice as many levels: an object of properties is
/// a level for it.
const MAX_DEPTH: usize = 62;
/// The maximum number of annotated parameters of a tool.
const MAX_PARAMETERS: usize = 64;
/// The maximum length of the names on the path to a parameter, together, in bytes.
const MAX_PATH: usize = 4096;
/// The maximum length of an annotation, in bytes of JSON text.
const MAX_ANNOTATION: usize = 256;
/// Keywords whose value is data, not a schema.
const DATA: [&str; 5] = ["default", "const", "enum", "examples", ANNOTATION];

/// Returns the annotated parameters of an input schema.
///
/// The whole schema is searched, because an annotation where it has no effect makes the tool
/// invalid. References are not followed. Fails as the variants of [`AnnotationError`] say.
pub(super) fn annotated_parameters(
    schema: &RawValue,
) -> Result<Vec<AnnotatedParameter>, AnnotationError> {
    let mut search = Search::default();
    let searched = search.schema(schema, Position::Arguments, 0);
    if let Some(error) = search.error {
        return Err(error);
    }
    searched.map_err(|_| AnnotationError::Unreadable)?;
    let mut headers = HashSet::new();
    if search
        .found
        .iter()
        .all(|parameter| headers.insert(&parameter.header))
    {
        Ok(search.found)
    } else {
        Err(AnnotationError::DuplicateName)
    }
}

/// What a schema describes.
#[derive(Clone, Copy)]
enum Position<'a> {
    /// The arguments.
    Arguments,
    /// A property of the object at another position. The name is `None` if it is too long.
    Property {
        object: &'a Position<'a>,
        name: Option<&'a str>,
    },
    /// A value that no fixed path leads to, such as an item of an array, or one of several
    /// alternatives.
    Elsewhere,
}

impl<'a> Position<'a> {
    /// The path from the arguments. Fails if there is no fixed path, it is empty, or too long.
    fn property_path(mut self) -> Result<Vec<String>, AnnotationError> {
        let mut path: Vec<&'a str> = Vec::new();
        while let Self::Property { object, name } = self {
            path.push(name.ok_or(AnnotationError::TooLarge)?);
            self = *object;
        }
        if path.is_empty() || matches!(self, Self::Elsewhere) {
            return Err(AnnotationError::NotAProperty);
        }
        if path.iter().map(|name| name.len()).sum::<usize>() > MAX_PATH {
            return Err(AnnotationError::TooLarge);
        }
        Ok(path.into_iter().rev().map(str::to_owned).collect())
    }
}

/// What was found so far.
#[derive(Default)]
struct Search {
    found: Vec<AnnotatedParameter>,
    /// Why the search has ended early.
    error: Option<AnnotationError>,
}

impl Search {
    fn schema(
        &mut self,
        schema: &RawValue,
        position: Position<'_>,
        depth: usize,
    ) -> serde_json::Result<()> {
        let schema_seed = Schema {
            search: self,
            position,
            depth,
        };
        schema_seed.deserialize(&mut serde_json::Deserializer::from_str(schema.get()))
    }

    /// Ends the search.
    fn fail<E: serde::de::Error>(&mut self, error: AnnotationError) -> E {
        self.error = Some(error);
        E::custom("invalid annotation")
    }

    fn add(
        &mut self,
        header: Option<HeaderName>,
        position: Position<'_>,
    ) -> Result<(), AnnotationError> {
        let path = position.property_path()?;
        let header = header.ok_or(AnnotationError::InvalidName)?;
        if self.found.len() == MAX_PARAMETERS {
            return Err(AnnotationError::TooLarge);
        }
        self.found.push(AnnotatedParameter { header, path });
        Ok(())
    }
}

/// Searches a schema as it is read, without a value of it.
struct Schema<'s, 'p> {
    search: &'s mut Search,
    position: Position<'p>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Schema<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(self.search.fail(AnnotationError::TooDeep));
        }
        deserializer.deserialize_any(self)
    }
}

/// Accepts the scalar values, which have no annotations.
macro_rules! ignore_scalars {
    () => {
        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }
        fn visit_bool<E>(self, _: bool) -> Result<(), E> {
            Ok(())
        }
        fn visit_i64<E>(self, _: i64) -> Result<(), E> {
            Ok(())
        }
        fn visit_u64<E>(self, _: u64) -> Result<(), E> {
            Ok(())
        }
        fn visit_f64<E>(self, _: f64) -> Result<(), E> {
            Ok(())
        }
        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            Ok(())
        }
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a schema")
        }
    };
}

impl<'de> Visitor<'de> for Schema<'_, '_> {
    type Value = ();

    ignore_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut schemas: A) -> Result<(), A::Error> {
        let Self { search, depth, .. } = self;
        let position = Position::Elsewhere;
        while schemas
            .next_element_seed(Schema {
                search,
                position,
                depth: depth + 1,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keywords: A) -> Result<(), A::Error> {
        let Self {
            search,
            position,
            depth,
        } = self;
        let mut annotation = None;
        let mut is_primitive = false;
        while let Some(Name(keyword)) = keywords.next_key()? {
            match keyword.as_deref() {
                Some(ANNOTATION) => annotation = Some(header_name(keywords.next_value()?)),
                Some("properties") => keywords.next_value_seed(Properties {
                    search,
                    object: position,
                    depth,
                })?,
                Some("type") => {
                    let types: &RawValue = keywords.next_value()?;
                    is_primitive = is_primitive_type(types);
                    search
                        .schema(types, Position::Elsewhere, depth + 1)
                        .map_err(A::Error::custom)?;
                }
                Some(keyword) if DATA.contains(&keyword) => {
                    keywords.next_value::<IgnoredAny>()?;
                }
                _ => keywords.next_value_seed(Schema {
                    search,
                    position: Position::Elsewhere,
                    depth: depth + 1,
                })?,
            }
        }
        let Some(header) = annotation else {
            return Ok(());
        };
        if let Err(error) = search.add(header, position) {
            return Err(search.fail(error));
        }
        if is_primitive {
            Ok(())
        } else {
            Err(search.fail(AnnotationError::NotPrimitive))
        }
    }
}

/// The properties of an object, by name.
struct Properties<'s, 'p> {
    search: &'s mut Search,
    object: Position<'p>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Properties<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Properties<'_, '_> {
    type Value = ();

    ignore_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, schemas: A) -> Result<(), A::Error> {
        let Self { search, depth, .. } = self;
        Schema {
            search,
            position: Position::Elsewhere,
            depth: depth + 1,
        }
        .visit_seq(schemas)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut properties: A) -> Result<(), A::Error> {
        let Self {
            search,
            object,
            depth,
        } = self;
        while let Some(Name(name)) = properties.next_key()? {
            let position = Position::Property {
                object: &object,
                name: name.as_deref(),
            };
            properties.next_value_seed(Schema {
                search,
                position,
                depth: depth + 1,
            })?;
        }
        Ok(())
    }
}

/// The header of an annotation. `HeaderName` accepts the tokens of RFC 9110, and ignores case.
fn header_name(annotation: &RawValue) -> Option<HeaderName> {
    let name = json::string(annotation, MAX_ANNOTATION).filter(|name| !name.is_empty())?;
    HeaderName::try_from(format!("mcp-param-{name}")).ok()
}

/// Whether the value of `type` is a string, an integer or a boolean, possibly with null.
fn is_primitive_type(types: &RawValue) -> bool {
    /// The length of the longest name of a type, written as escapes.
    const MAX_TYPE: usize = 64;
    let name = |name: &RawValue| json::string(name, MAX_TYPE);
    let is_primitive = |name: &str| matches!(name, "string" | "integer" | "boolean");
    let Some(names) = json::items(types) else {
        return name(types).is_some_and(|name| is_primitive(&name));
    };
    let mut any_is_primitive = false;
    for one in names.map(name) {
        match one.as_deref() {
            Some(one) if is_primitive(one) => any_is_primitive = true,
            Some("null") => {}
            _ => return false,
        }
    }
    any_is_primitive
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    fn annotated_parameters(schema: &Value) -> Result<Vec<AnnotatedParameter>, AnnotationError> {
        super::annotated_parameters(&to_raw_value(schema).unwrap())
    }

    fn object(properties: Value) -> Value {
        json!({ "type": "object", "properties": properties })
    }

    #[test]
    fn properties_are_found_at_every_depth() {
        let flag = json!({ "type": ["boolean", "null"], "x-mcp-header": "Flag" });
        let schema = object(json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": object(json!({ "deeper": object(json!({ "flag": flag })) })),
            "plain": { "type": "string" },
            "x-mcp-header": { "type": "string", "default": { "x-mcp-header": "" } },
        }));
        let mut found = annotated_parameters(&schema).unwrap();
        found.sort_by(|one, other| one.path.cmp(&other.path));
        let parameter = |header: &'static str, path: &[&str]| AnnotatedParameter {
            header: HeaderName::from_static(header),
            path: path.iter().map(|name| (*name).to_owned()).collect(),
        };
        let expected = [
            parameter("mcp-param-flag", &["deep", "deeper", "flag"]),
            parameter("mcp-param-region", &["region"]),
        ];
        assert_eq!(found, expected);
        assert_eq!(annotated_parameters(&Value::Null), Ok(Vec::new()));
    }

    #[test]
    fn an_annotation_is_a_header_name() {
        for name in [
            json!(""),
            json!("a b"),
            json!("a:b"),
            json!("ä"),
            json!("a\r\nb"),
            json!(7),
            Value::Null,
        ] {
            let schema = object(json!({ "p": { "type": "string", "x-mcp-header": name } }));
            assert_eq!(
                annotated_parameters(&schema),
                Err(AnnotationError::InvalidName),
                "{name}"
            );
        }
    }

    #[test]
    fn an_annotated_parameter_is_primitive() {
        for types in [
            json!("object"),
            json!("array"),
            json!("null"),
            json!("number"),
            json!(["null"]),
            json!(["string", "object"]),
            json!([]),
            Value::Null,
        ] {
            let schema = object(json!({ "p": { "type": types, "x-mcp-header": "A" } }));
            assert_eq!(
                annotated_parameters(&schema),
                Err(AnnotationError::NotPrimitive),
                "{types}"
            );
        }
    }

    #[test]
    fn headers_are_unique() {
        let schema = object(json!({
            "p": { "type": "string", "x-mcp-header": "A" },
            "q": object(json!({ "r": { "type": "string", "x-mcp-header": "a" } })),
        }));
        assert_eq!(
            annotated_parameters(&schema),
            Err(AnnotationError::DuplicateName)
        );
    }

    #[test]
    fn only_properties_are_annotated() {
        let annotated = json!({ "type": "string", "x-mcp-header": "A" });
        for (name, schema) in [
            ("the arguments", annotated.clone()),
            (
                "an item",
                object(json!({ "p": { "type": "array", "items": annotated } })),
            ),
            (
                "an alternative",
                object(json!({ "p": { "anyOf": [object(json!({ "q": annotated }))] } })),
            ),
            ("a definition", json!({ "$defs": { "d": annotated } })),
            (
                "no object of properties",
                json!({ "properties": [annotated] }),
            ),
        ] {
            assert_eq!(
                annotated_parameters(&schema),
                Err(AnnotationError::NotAProperty),
                "{name}"
            );
        }
    }

    #[test]
    fn depth_is_bounded() {
        type Nest = fn(Value) -> Value;
        let nests: [(&str, Nest); 3] = [
            (
                "properties",
                |inner| json!({ "properties": { "p": inner } }),
            ),
            ("items", |inner| json!({ "items": inner })),
            ("an array", |inner| json!([inner])),
        ];
        for (name, nest) in nests {
            for (depth, expected) in [
                (MAX_DEPTH - 1, Ok(Vec::new())),
                (MAX_DEPTH, Err(AnnotationError::TooDeep)),
            ] {
                let nested = (0..depth).fold(json!({ "type": "string" }), |inner, _| nest(inner));
                assert_eq!(annotated_parameters(&nested), expected, "{name} {depth}");
            }
        }
    }

    /// Neither many parameters nor long paths to them are stored.
    #[test]
    fn size_is_bounded() {
        let annotated = |header: &str| json!({ "type": "string", "x-mcp-header": header });
        let many = |count: usize| {
            object(
                (0..count)
                    .map(|number| (format!("p{number}"), annotated(&format!("H{number}"))))
                    .collect(),
            )
        };
        assert_eq!(
            annotated_parameters(&many(MAX_PARAMETERS)).map(|found| found.len()),
            Ok(MAX_PARAMETERS)
        );
        assert_eq!(
            annotated_parameters(&many(MAX_PARAMETERS + 1)),
            Err(AnnotationError::TooLarge)
        );
        for (length, is_valid) in [(2048, true), (2049, false), (5000, false)] {
            let name = || "x".repeat(length);
            let nested = object(json!({ name(): object(json!({ name(): annotated("A") })) }));
            let found = annotated_parameters(&nested);
            assert_eq!(found.is_ok(), is_valid, "{length}");
        }
        let long = annotated(&"A".repeat(MAX_ANNOTATION));
        assert_eq!(
            annotated_parameters(&object(json!({ "p": long }))),
            Err(AnnotationError::InvalidName)
        );
    }
}
