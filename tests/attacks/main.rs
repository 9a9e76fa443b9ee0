//! One file for each attack: what the client gets, what the log says, and that nothing reached the upstream.

mod absurd_numbers;
mod algorithm_confusion;
mod audience_variants;
mod critical_header;
mod duplicate_members;
mod embedded_keys;
mod expired;
mod foreign_kid;
mod future;
mod issuer_lookalikes;
mod none_algorithm;
mod other_token_kinds;
