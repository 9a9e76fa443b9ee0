/// An issuer whose tokens are taken, with its keys.
#[derive(Debug)]
pub struct TrustedIssuer {}
