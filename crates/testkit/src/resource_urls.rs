//! The URLs of the [protected resource](crate::protected_resource) and of its authorization server.

/// The resource.
pub const RESOURCE: &str = "https://mcp.example.com/mcp";
/// The resource's metadata.
pub const PRM_URL: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
/// The authorization server.
pub const ISSUER: &str = "https://auth.example.com";
/// The authorization server's metadata.
pub const METADATA_URL: &str = "https://auth.example.com/.well-known/oauth-authorization-server";
/// The registration endpoint.
pub const REGISTRATION_URL: &str = "https://auth.example.com/register";
/// The token endpoint.
pub const TOKEN_URL: &str = "https://auth.example.com/token";
