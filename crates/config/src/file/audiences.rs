use std::{borrow::Cow, collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

/// `audiences`: other URLs of the resources, and the issuer's own names for them, that are accepted
/// in `aud`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Audiences {
    /// Those of the only resource.
    OfOne(Vec<String>),
    /// Those of each endpoint.
    ByEndpoint(BTreeMap<String, Vec<String>>),
}

impl Audiences {
    /// Returns all of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (list, table) = match self {
            Self::OfOne(names) => (Some(names), None),
            Self::ByEndpoint(endpoints) => (None, Some(endpoints)),
        };
        let of_endpoints = table.into_iter().flat_map(BTreeMap::values);
        list.into_iter()
            .chain(of_endpoints)
            .flatten()
            .map(String::as_str)
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names().next().is_none()
    }
}

impl Default for Audiences {
    fn default() -> Self {
        Self::OfOne(Vec::new())
    }
}

impl<'de> Deserialize<'de> for Audiences {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AudiencesVisitor)
    }
}

impl JsonSchema for Audiences {
    fn schema_name() -> Cow<'static, str> {
        "Audiences".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<String>>();
        json_schema!({
            "anyOf": [list, { "type": "object", "additionalProperties": list }],
        })
    }
}

struct AudiencesVisitor;

impl<'de> Visitor<'de> for AudiencesVisitor {
    type Value = Audiences;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[\"…\"], or { \"/endpoint\" = [\"…\"] } with several resources")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Audiences, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(names)).map(Audiences::OfOne)
    }

    fn visit_map<A: MapAccess<'de>>(self, endpoints: A) -> Result<Audiences, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(endpoints)).map(Audiences::ByEndpoint)
    }
}
