//! [`AutoConsent`]: for authorization servers that grant without a user.

use std::{fmt, sync::Arc};

use http::header;
use portcullis_discovery::{BoxFuture, Fetch, FetchRequest};
use portcullis_metadata::syntax::url_without_secrets;
use url::Url;

use super::{Interaction, InteractionError};
use crate::{AuthorizationRequest, NewRegistration, RedirectParameters};

/// Completes the flow without a user: it fetches the authorization URL and reads the redirect's
/// `Location`. It works with authorization servers that consent automatically, such as the
/// development server in its automatic mode.
///
/// It accepts a new registration for a step-up, and neither a broader resource nor an unbound
/// token.
///
/// Its redirect URI is `http://127.0.0.1/callback`. No request is ever sent there, and nothing
/// listens.
pub struct AutoConsent {
    fetch: Arc<dyn Fetch>,
    redirect_uri: Url,
}

impl AutoConsent {
    /// Creates it with a fetcher. Each request has the policy of its sign-in
    /// ([`AuthorizationRequest::url_policy`]).
    pub fn new(fetch: Arc<dyn Fetch>) -> Self {
        #[expect(clippy::expect_used, reason = "the text is a constant")]
        let redirect_uri = Url::parse("http://127.0.0.1/callback").expect("a URL");
        Self {
            fetch,
            redirect_uri,
        }
    }
}

impl Interaction for AutoConsent {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        Box::pin(async move {
            let page = FetchRequest::get(request.url().clone(), request.url_policy());
            let answer = self
                .fetch
                .fetch(page)
                .await
                .map_err(|error| InteractionError::Fetch {
                    url: url_without_secrets(request.url()).into(),
                    error,
                })?;
            let location = answer
                .headers
                .get(header::LOCATION)
                .filter(|_| answer.status.is_redirection());
            let Some(location) = location else {
                return Err(InteractionError::UserRequired {
                    status: answer.status,
                });
            };
            let location = location
                .to_str()
                .ok()
                .and_then(|location| request.url().join(location).ok())
                .ok_or(InteractionError::Malformed)?;
            if !is_redirect_to(&location, &self.redirect_uri) {
                return Err(InteractionError::RedirectedElsewhere);
            }
            RedirectParameters::parse(location.query().unwrap_or(""))
                .map_err(|_| InteractionError::Malformed)
        })
    }

    fn accept_new_registration<'a>(
        &'a self,
        _registration: &'a NewRegistration,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        Box::pin(async { Ok(true) })
    }
}

/// Whether a URL is the redirect URI with any query.
fn is_redirect_to(location: &Url, redirect_uri: &Url) -> bool {
    let mut bare = location.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    bare == *redirect_uri
}

impl fmt::Debug for AutoConsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutoConsent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        authorization::request::tests::request,
        testing::{FetchFn, Reply},
    };

    async fn answer(reply: fn() -> Reply) -> Result<RedirectParameters, InteractionError> {
        AutoConsent::new(FetchFn::new(move |_| Some(reply())))
            .authorize(&request(true))
            .await
    }

    #[tokio::test]
    async fn the_answer_is_read_from_the_redirect() {
        let to = |location| Reply::status(302).header(header::LOCATION, location);
        let given = answer(|| {
            Reply::status(303).header(header::LOCATION, "http://127.0.0.1/callback?code=c&state=s")
        });
        assert_eq!(given.await.unwrap().code.unwrap().secret(), "c");

        let code = |given: Result<RedirectParameters, InteractionError>| given.unwrap_err().code();
        assert_eq!(
            code(answer(|| Reply::status(200)).await),
            "interaction.wants_a_person"
        );
        assert_eq!(
            code(answer(|| Reply::status(302)).await),
            "interaction.wants_a_person"
        );
        for elsewhere in [
            "http://127.0.0.1/other?code=c",
            "http://127.0.0.1:1/callback?code=c",
            "/callback?code=c",
        ] {
            let network = FetchFn::new(move |_| Some(to(elsewhere)));
            let given = AutoConsent::new(network).authorize(&request(true)).await;
            assert_eq!(
                code(given),
                "interaction.redirected_elsewhere",
                "{elsewhere}"
            );
        }
        let network = FetchFn::new(move |_| Some(to("http://127.0.0.1/callback?code=c&code=d")));
        let consent = AutoConsent::new(network);
        assert_eq!(
            code(consent.authorize(&request(true)).await),
            "interaction.malformed"
        );
        assert_eq!(format!("{consent:?}"), "AutoConsent { .. }");
    }
}
