//! Requests about grants: queries and bodies.

use portcullis_broker::GrantFilter;
use url::form_urlencoded;

use super::super::{
    request::{DEFAULT_PAGE, MAX_NAME, MAX_NOTE, check_length, from_json, parse_limit},
    response::AdminError,
};
use crate::administration::EndGrantsRequest;

/// The grants of a list.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct ListGrants {
    pub(in crate::admin) filter: GrantFilter,
    pub(super) after: Option<String>,
    pub(super) limit: usize,
}

/// The grants that end. Their filter has a grant, a subject or a provider.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct EndGrants {
    pub(in crate::admin) filter: GrantFilter,
    pub(super) after: Option<String>,
    pub(in crate::admin) note: Option<String>,
}

impl ListGrants {
    /// Reads a query. Fails if a parameter is unknown, repeated or invalid.
    pub(in crate::admin) fn parse(query: &str) -> Result<Self, AdminError> {
        let mut request = Self {
            filter: GrantFilter::default(),
            after: None,
            limit: DEFAULT_PAGE,
        };
        let mut seen = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if seen.contains(&name) {
                return Err(AdminError::invalid("a parameter is repeated"));
            }
            check_length(&name, &value, MAX_NAME)?;
            match &*name {
                "grant" => request.filter.id = Some((*value).into()),
                "subject" => request.filter.subject = Some((*value).into()),
                "client" => request.filter.client_id = Some((*value).into()),
                "provider" => request.filter.provider = Some((*value).into()),
                "after" => request.after = Some(value.into_owned()),
                "limit" => request.limit = parse_limit(&value)?,
                _ => {
                    return Err(AdminError::invalid(
                        "a parameter is unknown; there are grant, subject, client, provider, after and limit",
                    ));
                }
            }
            seen.push(name);
        }
        Ok(request)
    }
}

impl EndGrants {
    /// Reads a body. Fails if it is not JSON of the expected form, or names neither a grant nor a
    /// subject nor a provider: a client alone is every installation of a program (RF6).
    pub(in crate::admin) fn parse(body: &[u8]) -> Result<Self, AdminError> {
        let EndGrantsRequest {
            grant,
            subject,
            client,
            provider,
            after,
            note,
        } = from_json(body)?;
        for (name, text, max) in [
            ("grant", &grant, MAX_NAME),
            ("subject", &subject, MAX_NAME),
            ("client", &client, MAX_NAME),
            ("provider", &provider, MAX_NAME),
            ("after", &after, MAX_NAME),
            ("note", &note, MAX_NOTE),
        ] {
            text.iter()
                .try_for_each(|text| check_length(name, text, max))?;
        }
        let names_owners = subject.is_some() || provider.is_some();
        let problem = match grant {
            Some(_) if names_owners || client.is_some() || after.is_some() => {
                Some("name either a grant, or a subject, a provider and a client")
            }
            None if !names_owners && client.is_some() => Some(
                "a client is every installation of a program; name a subject or a provider as well",
            ),
            None if !names_owners => Some("name a grant, a subject or a provider"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(AdminError::invalid(problem));
        }
        Ok(Self {
            filter: GrantFilter {
                id: grant.map(Into::into),
                subject: subject.map(Into::into),
                client_id: client.map(Into::into),
                provider: provider.map(Into::into),
            },
            after,
            note,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn queries_are_read() {
        let request =
            ListGrants::parse("subject=idp_a%20b&client=c&provider=entra&grant=g&after=f&limit=7")
                .unwrap();
        let filter = GrantFilter {
            id: Some("g".into()),
            subject: Some("idp_a b".into()),
            client_id: Some("c".into()),
            provider: Some("entra".into()),
        };
        let expected = ListGrants {
            filter,
            after: Some("f".to_owned()),
            limit: 7,
        };
        assert_eq!(request, expected);
        assert_eq!(ListGrants::parse("").unwrap().limit, DEFAULT_PAGE);
        for query in [
            "limit=0",
            "limit=1001",
            "subject=",
            "issuer=i",
            "subject=a&subject=b",
        ] {
            let error = ListGrants::parse(query).unwrap_err();
            assert_eq!(error.code, "admin.request_invalid", "{query}");
        }
    }

    /// RF6: an end names a grant, a user or a provider, and never a client alone.
    #[test]
    fn ends_name_their_grants() {
        for body in [
            r#"{"grant":"g","note":"n"}"#,
            r#"{"subject":"a"}"#,
            r#"{"subject":"a","client":"c","after":"g"}"#,
            r#"{"provider":"p"}"#,
            r#"{"provider":"p","client":"c"}"#,
            r#"{"provider":"p","subject":"a"}"#,
        ] {
            assert!(EndGrants::parse(body.as_bytes()).is_ok(), "{body}");
        }
        for body in [
            "",
            "{}",
            r#"{"client":"c"}"#,
            r#"{"client":"c","after":"g"}"#,
            r#"{"grant":"g","subject":"a"}"#,
            r#"{"grant":"g","client":"c"}"#,
            r#"{"grant":"g","after":"a"}"#,
            r#"{"subject":""}"#,
            r#"{"subject":null}"#,
            r#"{"issuer":"i","subject":"a"}"#,
        ] {
            let error = EndGrants::parse(body.as_bytes()).unwrap_err();
            assert_eq!(error.code, "admin.request_invalid", "{body}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(body in prop::collection::vec(any::<u8>(), 0..200), query in "\\PC{0,60}") {
            let _ = (EndGrants::parse(&body), ListGrants::parse(&query));
        }
    }
}
