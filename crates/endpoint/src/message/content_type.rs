//! The check of a request's `Content-Type` and `Content-Encoding`.

use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use portcullis_mcp::header;

/// The body is not declared as JSON in UTF-8.
#[derive(Debug)]
pub(crate) struct UnsupportedContentType;

/// Checks that the body is declared as JSON in UTF-8 without a content coding. An inner service
/// that honors another charset or coding would read a text other than the checked one.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), UnsupportedContentType> {
    let single = |name| {
        header::single(headers, name).map_err(|header::RepeatedHeader| UnsupportedContentType)
    };
    let is_json = single(&CONTENT_TYPE)?
        .is_some_and(|value| value == "application/json" || value.to_str().is_ok_and(is_json));
    let is_identity = single(&CONTENT_ENCODING)?.is_none_or(|coding| {
        coding
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"identity")
    });
    if is_json && is_identity {
        Ok(())
    } else {
        Err(UnsupportedContentType)
    }
}

/// Returns whether the media type is `application/json`, with at most one parameter: `charset` of
/// UTF-8 in the syntax of RFC 9110 section 8.3.1. Some readers take the charset from other
/// parameters, such as `charset*0` of RFC 2231.
fn is_json(content_type: &str) -> bool {
    let mut parts = content_type
        .split(';')
        .map(|part| part.trim_matches([' ', '\t']));
    let essence = parts
        .next()
        .is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    let mut parameters = parts.filter(|parameter| !parameter.is_empty());
    essence && parameters.next().is_none_or(is_utf8) && parameters.next().is_none()
}

fn is_utf8(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    let quoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
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

    /// F4, F11: only JSON in UTF-8 is accepted, with no parameter except one charset.
    #[test]
    fn only_plain_json_is_accepted() {
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
