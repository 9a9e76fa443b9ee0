//! The tower layer that puts OAuth 2.1 in front of any HTTP resource.

mod authenticate;
mod authorize;
mod bearer;
mod body;
mod caller;
mod challenges;
mod cors;
mod decision;
mod exchange;
mod future;
mod judge;
mod layer;
mod metadata;
mod origin;
mod path_glob;
mod request_id;
mod resource;
mod respond;
mod settings;

pub use body::GuardBody;
pub use caller::{Caller, Peer, RefusalCode};
pub use challenges::Challenges;
pub use decision::{Decision, DecisionSink, TracingSink};
pub use future::GuardFuture;
pub use layer::{Guard, GuardLayer};
pub use origin::{OriginPolicy, OriginPolicyError, OriginRefused};
pub use path_glob::{PathGlob, PathGlobError};
pub use request_id::RequestId;
pub use resource::ProtectedResource;
pub use settings::{Authentication, CorsSettings, GuardSettings, RouteRule, ScopeJudge, SettingsError};

#[cfg(test)]
mod tests;
