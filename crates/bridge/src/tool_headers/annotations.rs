//! Finds the `x-mcp-header` annotations of a tool's input schema.

use std::collections::HashSet;

use http::HeaderName;
use serde_json::{Map, Value};

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
}

/// The keyword of an annotation (2026-07-28, "Custom Headers from Tool Parameters").
const ANNOTATION: &str = "x-mcp-header";
/// The maximum depth of a schema.
const MAX_DEPTH: usize = 64;
/// Keywords whose value is data, not a schema.
const DATA: [&str; 5] = ["default", "const", "enum", "examples", ANNOTATION];

/// Returns the annotated parameters of an input schema.
///
/// The whole schema is searched, because an annotation where it has no effect makes the tool invalid. References are not
/// followed.
///
/// # Errors
/// As the variants of [`AnnotationError`] say.
pub(super) fn annotated_parameters(schema: &Value) -> Result<Vec<AnnotatedParameter>, AnnotationError> {
    let mut found = Vec::new();
    find(schema, Position::Arguments, 0, &mut found)?;
    let mut headers = HashSet::new();
    if found.iter().all(|parameter| headers.insert(&parameter.header)) {
        Ok(found)
    } else {
        Err(AnnotationError::DuplicateName)
    }
}

/// What a schema describes.
#[derive(Clone, Copy)]
enum Position<'a> {
    /// The arguments.
    Arguments,
    /// A property of the object at another position.
    Property { object: &'a Position<'a>, name: &'a str },
    /// A value that no fixed path leads to, such as an item of an array, or one of several alternatives.
    Elsewhere,
}

impl Position<'_> {
    /// The path from the arguments. `None` if there is no fixed one, or it is empty.
    fn property_path(self) -> Option<Vec<String>> {
        let Self::Property { object, name } = self else { return None };
        let mut path = match object {
            Self::Arguments => Vec::new(),
            object => object.property_path()?,
        };
        path.push(name.to_owned());
        Some(path)
    }
}

fn find(
    schema: &Value,
    position: Position<'_>,
    depth: usize,
    found: &mut Vec<AnnotatedParameter>,
) -> Result<(), AnnotationError> {
    if depth > MAX_DEPTH {
        return Err(AnnotationError::TooDeep);
    }
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Array(schemas) => {
            return schemas.iter().try_for_each(|schema| find(schema, Position::Elsewhere, depth + 1, found));
        }
        _ => return Ok(()),
    };
    if let Some(annotation) = keywords.get(ANNOTATION) {
        let path = position.property_path().ok_or(AnnotationError::NotAProperty)?;
        if !is_primitive(keywords) {
            return Err(AnnotationError::NotPrimitive);
        }
        let header = header_name(annotation).ok_or(AnnotationError::InvalidName)?;
        found.push(AnnotatedParameter { header, path });
    }
    for (keyword, value) in keywords.iter().filter(|(keyword, _)| !DATA.contains(&keyword.as_str())) {
        match value {
            Value::Object(properties) if keyword == "properties" => {
                for (name, property) in properties {
                    find(property, Position::Property { object: &position, name }, depth + 1, found)?;
                }
            }
            value => find(value, Position::Elsewhere, depth + 1, found)?,
        }
    }
    Ok(())
}

/// The header of an annotation. `HeaderName` accepts the tokens of RFC 9110, and ignores case.
fn header_name(annotation: &Value) -> Option<HeaderName> {
    let name = annotation.as_str().filter(|name| !name.is_empty())?;
    HeaderName::try_from(format!("mcp-param-{name}")).ok()
}

/// Whether a schema is a string, an integer or a boolean, possibly with null.
fn is_primitive(schema: &Map<String, Value>) -> bool {
    let is_primitive = |name: &Value| matches!(name.as_str(), Some("string" | "integer" | "boolean"));
    match schema.get("type") {
        Some(Value::Array(names)) => {
            names.iter().any(is_primitive) && names.iter().all(|name| is_primitive(name) || name == "null")
        }
        Some(name) => is_primitive(name),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let expected =
            [parameter("mcp-param-flag", &["deep", "deeper", "flag"]), parameter("mcp-param-region", &["region"])];
        assert_eq!(found, expected);
        assert_eq!(annotated_parameters(&Value::Null), Ok(Vec::new()));
    }

    #[test]
    fn an_annotation_is_a_header_name() {
        for name in [json!(""), json!("a b"), json!("a:b"), json!("ä"), json!("a\r\nb"), json!(7), Value::Null] {
            let schema = object(json!({ "p": { "type": "string", "x-mcp-header": name } }));
            assert_eq!(annotated_parameters(&schema), Err(AnnotationError::InvalidName), "{name}");
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
            assert_eq!(annotated_parameters(&schema), Err(AnnotationError::NotPrimitive), "{types}");
        }
    }

    #[test]
    fn headers_are_unique() {
        let schema = object(json!({
            "p": { "type": "string", "x-mcp-header": "A" },
            "q": object(json!({ "r": { "type": "string", "x-mcp-header": "a" } })),
        }));
        assert_eq!(annotated_parameters(&schema), Err(AnnotationError::DuplicateName));
    }

    #[test]
    fn only_properties_are_annotated() {
        let annotated = json!({ "type": "string", "x-mcp-header": "A" });
        for (name, schema) in [
            ("the arguments", annotated.clone()),
            ("an item", object(json!({ "p": { "type": "array", "items": annotated } }))),
            ("an alternative", object(json!({ "p": { "anyOf": [object(json!({ "q": annotated }))] } }))),
            ("a definition", json!({ "$defs": { "d": annotated } })),
            ("no object of properties", json!({ "properties": [annotated] })),
        ] {
            assert_eq!(annotated_parameters(&schema), Err(AnnotationError::NotAProperty), "{name}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        type Nest = fn(Value) -> Value;
        let nests: [(&str, Nest); 3] = [
            ("properties", |inner| json!({ "properties": { "p": inner } })),
            ("items", |inner| json!({ "items": inner })),
            ("an array", |inner| json!([inner])),
        ];
        for (name, nest) in nests {
            for (depth, expected) in [(MAX_DEPTH - 1, Ok(Vec::new())), (MAX_DEPTH, Err(AnnotationError::TooDeep))] {
                let nested = (0..depth).fold(json!({ "type": "string" }), |inner, _| nest(inner));
                assert_eq!(annotated_parameters(&nested), expected, "{name} {depth}");
            }
        }
    }
}
