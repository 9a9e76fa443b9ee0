//! [`Caller`] as an extractor of axum.

use axum_core::{
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};

use crate::Caller;

/// The route is not behind a guard: a fault of the program, for which clients get 500 without
/// details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request did not pass a guard: add the guard's layer after the route")]
pub struct NotGuarded;

impl IntoResponse for NotGuarded {
    fn into_response(self) -> Response {
        tracing::error!("{self}");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

/// Fails on a route that is not behind a guard.
impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = NotGuarded;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, NotGuarded> {
        parts.extensions.get::<Self>().cloned().ok_or(NotGuarded)
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, routing::get};
    use http::Request;
    use portcullis_metadata::{ProtectedResourceMetadata, ResourceUri};
    use tower::ServiceExt as _;

    use super::*;
    use crate::{Authentication, GuardLayer, GuardSettings, ProtectedResource};

    async fn name(caller: Caller) -> String {
        caller.subject().unwrap_or("unknown").to_owned()
    }

    async fn status(router: Router) -> StatusCode {
        let request = Request::get("/")
            .header("host", "localhost:3000")
            .body(Body::empty())
            .unwrap();
        router.oneshot(request).await.unwrap().status()
    }

    /// A handler behind a guard gets its caller. Without a guard, it does not run.
    #[tokio::test]
    async fn the_caller_is_extracted() {
        let routes = || Router::new().route("/", get(name));
        assert_eq!(status(routes()).await, StatusCode::INTERNAL_SERVER_ERROR);
        let metadata = ProtectedResourceMetadata::new(
            ResourceUri::parse("http://localhost:3000/").unwrap(),
            vec![],
        );
        let settings = GuardSettings::new(metadata, Authentication::Off).unwrap();
        let guard = GuardLayer::new(ProtectedResource::new(settings).unwrap());
        assert_eq!(status(routes().layer(guard)).await, StatusCode::OK);
    }
}
