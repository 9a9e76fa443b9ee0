//! `[shared]` in a program that was built without the feature `redis`.

use url::Url;

use super::SessionPlan;
use crate::{
    Diagnostics,
    file::{Session, SharedStore},
};

/// The connection to other replicas, which no plan of this program has.
#[derive(Clone)]
pub enum ReplicasPlan {}

/// Rejects the table.
pub(super) fn plan(
    _: &SharedStore,
    _: &Url,
    _: &Session,
    _: bool,
    errors: &mut Diagnostics<'_>,
) -> Option<ReplicasPlan> {
    let text = "[shared] needs a portcullis that was built with the feature `redis`; build it with `--features redis`, or \
                remove the table";
    errors.add("", text);
    None
}

/// Returns no warnings.
pub(super) fn warnings(_: &SharedStore, _: &SessionPlan) -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use crate::from_text;

    use crate::plan::Plan;

    /// E13, J6: without the feature, the error names it.
    #[test]
    fn the_missing_feature_is_named() {
        let text = "base_url = \"http://127.0.0.1:3000\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n\
                    [shared]\nredis = \"redis://127.0.0.1\"";
        let error = Plan::new(&from_text(text).unwrap()).err().unwrap();
        assert!(error[0].text.contains("--features redis"), "{error:?}");
    }
}
