//! The pages that a browser shows: HTML without script, and the headers that go with each page.

mod color;
mod consent;
mod continue_page;
mod decision;
mod error_page;
mod escaped;
mod headers;
mod layout;
mod no_cookie;
mod other_machine;
mod redirect_target;
#[cfg(test)]
mod testing;
mod unknown_client;

pub(crate) use consent::{ClientView, ConsentPage, ProviderView, ResourceView, ScopeView};
pub(crate) use continue_page::ContinuePage;
pub(crate) use decision::Decision;
pub(crate) use error_page::ErrorPage;
pub(crate) use headers::Page;
pub(crate) use layout::Layout;
pub(crate) use no_cookie::NoCookiePage;
pub(crate) use other_machine::OtherMachinePage;
pub(crate) use redirect_target::RedirectTarget;
pub(crate) use unknown_client::UnknownClientPage;
