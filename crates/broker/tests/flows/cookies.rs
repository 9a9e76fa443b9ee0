//! The cookies of a browser in which many sign-ins begin.

use http::StatusCode;

use crate::support::{Browser, Setup, location, param};

/// OR3: a browser keeps the cookies of eight transactions. The last one works.
#[tokio::test]
async fn a_browser_that_begins_many_sign_ins() {
    let setup = Setup::new();
    let client = setup.client().await;
    let mut browser = Browser::new(&setup);
    for number in 1..20 {
        let page = browser.authorize(&client.request()).await;
        assert_eq!(page.status(), StatusCode::OK);
        let url = browser.approve(&page).await;
        let names = browser.cookies.keys();
        let transactions = names.filter(|name| name.contains("transaction-"));
        assert_eq!(transactions.count(), number.min(8));
        if number == 19 {
            let target = location(&browser.return_from(&url).await);
            assert!(param(&target, "code").is_some(), "{target}");
        }
    }
}
