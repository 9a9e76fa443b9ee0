#![doc = include_str!("../README.md")]

mod coded;
mod meaning;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, parse_macro_input};

use self::coded::Coded;

/// Adds `code`, which returns the stable reason code, and `REASON_CODES`, the list of codes with
/// their meanings.
///
/// Each variant has either `#[code = "…"]`, or `#[code(transparent)]` for the code of its first
/// field. The list has only the codes of the type itself.
#[proc_macro_derive(ReasonCodes, attributes(code))]
pub fn derive_reason_codes(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let coded = match &input.data {
        Data::Enum(data) => data
            .variants
            .iter()
            .map(Coded::variant)
            .collect::<syn::Result<Vec<_>>>()?,
        Data::Struct(_) => vec![Coded::structure(input)?],
        Data::Union(_) => {
            return Err(Error::new_spanned(
                &input.ident,
                "a union has no reason codes",
            ));
        }
    };
    let DeriveInput { ident, vis, .. } = input;
    let arms = coded.iter().map(Coded::arm);
    let entries = coded.iter().filter_map(Coded::entry);
    Ok(quote! {
        impl #ident {
            /// The reason codes of this type, each with what it means, in Markdown.
            #vis const REASON_CODES: &'static [(&'static str, &'static str)] = &[#(#entries),*];

            /// Returns the stable reason code, for logs, metrics and audit records. Do not send it
            /// to clients.
            #vis const fn code(&self) -> &'static str {
                match self { #(#arms),* }
            }
        }
    })
}
