//! A POSTed message, and what its headers say of it.

use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use portcullis_mcp::{Envelope, EnvelopeError, EnvelopeLimits, Era, EraError, Revisions, classify, header};

use crate::respond::Refusal;

/// A POSTed message as far as it can be read, and the era it belongs to as far as that can be told.
pub(crate) struct Message<'a> {
    pub(crate) envelope: Result<Envelope<'a>, EnvelopeError>,
    pub(crate) era: Result<Era, EraError>,
}

impl<'a> Message<'a> {
    pub(crate) fn read(body: &'a [u8], headers: &HeaderMap, limits: EnvelopeLimits, served: Revisions) -> Self {
        let envelope = Envelope::parse(body, limits);
        let era = classify(envelope.as_ref(), headers, served);
        Self { envelope, era }
    }

    /// Whether the rules of sessions are for this message.
    pub(crate) fn is_legacy(&self) -> bool {
        match &self.era {
            Ok(era) => matches!(era, Era::Legacy { .. }),
            Err(error) => error.is_legacy(),
        }
    }

    pub(crate) fn is_initialize(&self) -> bool {
        self.envelope.as_ref().is_ok_and(Envelope::is_initialize)
    }
}

/// Whether the body is said to be JSON in UTF-8, without a further coding: an inner service that honours another
/// charset or coding would read other text than was judged.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let single = |name| header::single(headers, name).map_err(|header::RepeatedHeader| Refusal::ContentType);
    let json =
        single(&CONTENT_TYPE)?.is_some_and(|value| value == "application/json" || value.to_str().is_ok_and(is_json));
    let plain = single(&CONTENT_ENCODING)?
        .is_none_or(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"));
    if json && plain { Ok(()) } else { Err(Refusal::ContentType) }
}

/// All spellings, beside the plain one that nearly every request has. The only parameter is one `charset` of UTF-8, in the syntax of
/// RFC 9110 (section 8.3.1): readers exist that take the charset from others, such as `charset*0` of RFC 2231.
fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(|part| part.trim_matches([' ', '\t']));
    let essence = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    let mut parameters = parts.filter(|parameter| !parameter.is_empty());
    essence && parameters.next().is_none_or(is_utf8) && parameters.next().is_none()
}

fn is_utf8(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    name.eq_ignore_ascii_case("charset") && quoted.unwrap_or(value).eq_ignore_ascii_case("utf-8")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn accepted(content_types: &[&'static str], coding: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        for content_type in content_types {
            headers.append(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        if let Some(coding) = coding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        check_content_type(&headers).is_ok()
    }

    /// F4, F11: JSON in UTF-8 and nothing else; no parameter but one charset.
    #[test]
    fn only_plain_json_is_taken() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
            "application/json ; Charset=\"UTF-8\" ;",
            "application/json;",
        ] {
            assert!(accepted(&[good], None), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "application/jsonx",
            "application/json-rpc",
            "application/x-www-form-urlencoded",
            "application/json; charset=utf-16",
            "application/json; charset=utf-7; charset=utf-8",
            "application/json; charset=utf-8; charset=utf-8",
            "application/json; charset*0=utf-7",
            "application/json; charset*0=utf; charset*1=-7",
            "application/json; charset*=utf-8''utf-7",
            "application/json; charset=utf-8; charset*0=utf-7",
            "application/json; charset*=utf-8",
            "application/json;v=1;charset=\"utf-8\"",
            "application/json; v=1",
            "application/json; charset",
            "application/json; charset=",
            "application/json; charset =utf-8",
            "application/json; charset= utf-8",
            "application/json; charset=\"utf-8",
            "application/json; charset=utf-8\"",
            "application/json; charset=\"utf\\-8\"",
            "application/json; charset=\"\"utf-8\"\"",
            "application/json; charset='utf-8'",
            "application/json; charset=utf-8 ,",
            "application/json, text/plain",
        ] {
            assert!(!accepted(&[bad], None), "{bad}");
        }
        assert!(!accepted(&[], None));
        assert!(!accepted(&["application/json", "application/json"], None));
        assert!(accepted(&["application/json"], Some("identity")));
        assert!(!accepted(&["application/json"], Some("gzip")));
    }
}
