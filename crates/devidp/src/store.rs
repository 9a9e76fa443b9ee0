//! The store of the authorization server: the tables in memory.

use portcullis_authorization_server::{Store, StoreError};

use crate::{app::App, tables::TableFull};

impl Store for App {
    async fn use_assertion(&self, issuer: &str, jti: &str) -> Result<bool, StoreError> {
        self.assertions
            .record_use(issuer, jti)
            .map_err(|TableFull| StoreError::Full)
    }
}
