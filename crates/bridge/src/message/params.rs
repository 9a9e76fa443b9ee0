//! [`Params`]: the parameters of a message.

use std::{borrow::Cow, collections::HashMap};

use portcullis_mcp::{meta, mirrored_member};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::request_id::RequestId;

/// The parameters of a message, if they are an object. Members of another type than the protocol
/// defines count as absent: the server rejects them.
#[derive(Clone, Copy)]
pub(crate) struct Params<'a>(Option<&'a RawValue>);

/// The members that the bridge uses.
#[derive(Default, Deserialize)]
struct Known<'a> {
    #[serde(borrow)]
    _meta: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    level: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    pub(super) fn new(params: Option<&'a RawValue>) -> Self {
        Self(params.filter(|params| params.get().starts_with('{')))
    }

    /// The whole object.
    pub(crate) fn raw(self) -> Option<&'a RawValue> {
        self.0
    }

    /// The protocol version of a modern message.
    pub(crate) fn protocol_version(self) -> Option<String> {
        let meta = self.meta().filter(|meta| meta.get().starts_with('{'))?;
        let members: HashMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(meta.get()).ok()?;
        serde_json::from_str(members.get(meta::PROTOCOL_VERSION)?.get()).ok()
    }

    pub(crate) fn meta(self) -> Option<&'a RawValue> {
        self.known()._meta
    }

    /// The name of the tool or prompt.
    pub(crate) fn name(self) -> Option<String> {
        string(self.known().name)
    }

    /// The URI of the resource.
    pub(crate) fn uri(self) -> Option<String> {
        string(self.known().uri)
    }

    /// The name or URI that the header `Mcp-Name` repeats in messages of this method.
    pub(crate) fn mirrored_name(self, method: &str) -> Option<String> {
        match mirrored_member(method)? {
            "name" => self.name(),
            "uri" => self.uri(),
            _ => None,
        }
    }

    /// The log level that the client requests.
    pub(crate) fn level(self) -> Option<String> {
        string(self.known().level)
    }

    /// The request that a cancellation names.
    pub(crate) fn request_id(self) -> Option<RequestId> {
        self.known().request_id.and_then(RequestId::from_json)
    }

    fn known(self) -> Known<'a> {
        self.0
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default()
    }
}

fn string(value: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(value?.get()).ok()
}
