use std::{sync::Arc, time::Duration};

use http::Response;
use portcullis_guard::ProtectedResource;
use portcullis_mcp::{EnvelopeLimits, Revisions};
use portcullis_session::SessionTarget;

use crate::{
    message::BodyBudget,
    response::{EndpointBody, Rejection, UpstreamRevisions},
    rules::Rules,
    session::{SessionMode, Sessions},
    settings::EndpointSettings,
    stream::StreamRegistry,
};

/// What the services of one endpoint layer share: its settings, prepared once, and what it learns.
pub(crate) struct EndpointState {
    pub(crate) resource: Arc<ProtectedResource>,
    pub(crate) rules: Rules,
    /// The revisions that the endpoint serves.
    pub(crate) revisions: Revisions,
    /// The revisions that the inner service lists.
    pub(crate) upstream_revisions: Arc<UpstreamRevisions>,
    pub(crate) sessions: Sessions,
    /// The time limit for the head of a response to `initialize`.
    pub(crate) head_timeout: Duration,
    /// For how long a response that is an event stream continues after its token has expired.
    pub(crate) response_grace: Duration,
    pub(crate) limits: EnvelopeLimits,
    /// The maximum size of a request body in bytes.
    pub(crate) max_body: usize,
    /// The memory for the bodies in progress, which other endpoints can share.
    pub(crate) budget: Arc<BodyBudget>,
    pub(crate) streams: StreamRegistry,
}

impl EndpointState {
    /// Prepares settings that were [checked](EndpointSettings::check).
    pub(crate) fn new(settings: EndpointSettings) -> Self {
        let sessions = Sessions {
            store: settings.sessions,
            target: SessionTarget::new(settings.resource.resource().clone(), &settings.upstream),
            mode: settings.session_mode,
            header: settings.session_header,
            ended_status: settings.ended_status,
        };
        Self {
            rules: Rules::new(
                settings.required_scopes,
                settings.resource.scope_implications().clone(),
                settings.rules,
            ),
            resource: settings.resource,
            revisions: settings.revisions,
            upstream_revisions: Arc::default(),
            sessions,
            head_timeout: settings.head_timeout,
            response_grace: settings.response_grace,
            limits: EnvelopeLimits::default().with_max_depth(settings.max_depth),
            max_body: settings.max_body,
            budget: settings.budget,
            streams: settings.streams,
        }
    }

    /// Returns whether GET and DELETE are served. They need a session.
    pub(crate) fn has_sessions(&self) -> bool {
        self.revisions.has_legacy() && self.sessions.mode == SessionMode::On
    }

    /// Returns the response to a rejected request.
    pub(crate) fn reject<B>(&self, rejection: &Rejection) -> Response<EndpointBody<B>> {
        rejection.response(self.resource.challenges())
    }
}
