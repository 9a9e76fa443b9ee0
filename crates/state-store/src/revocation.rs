//! [`Revocations`]: what other replicas have found out about tokens.

use portcullis_session::ScopeId;

/// Applies what other replicas have found out about tokens. Called on the task of the connection;
/// must not block.
pub trait Revocations: Send + Sync + 'static {
    /// An administrator has dropped the cached tokens of an issuer. `issuer` is the id of
    /// [`EndScope::Issuer`](portcullis_session::EndScope::Issuer). A drop may be repeated.
    fn drop_issuer(&self, issuer: ScopeId);

    /// Introspection has found these tokens inactive. They are named by hashes.
    fn drop_tokens(&self, tokens: &[[u8; 16]]);

    /// The replica may have missed tokens that others have found inactive.
    fn drop_introspected(&self);
}

/// Ignores all of them, for a process that accepts no tokens.
impl Revocations for () {
    fn drop_issuer(&self, _issuer: ScopeId) {}

    fn drop_tokens(&self, _tokens: &[[u8; 16]]) {}

    fn drop_introspected(&self) {}
}
