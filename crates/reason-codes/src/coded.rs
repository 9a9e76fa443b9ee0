//! [`Coded`]: a variant and its code.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, DeriveInput, Error, Expr, ExprLit, Fields, Lit, LitStr, Meta, Variant};

use crate::meaning::meaning;

/// A variant, or a struct, and where its code comes from.
pub(crate) struct Coded {
    /// The pattern that matches it. It binds `inner` if the code is that of a field.
    pattern: TokenStream,
    code: Code,
}

enum Code {
    Own { code: LitStr, meaning: String },
    OfFirstField,
}

impl Coded {
    pub(crate) fn variant(variant: &Variant) -> syn::Result<Self> {
        let ident = &variant.ident;
        let code = Code::read(&variant.attrs, ident)?;
        let pattern = match (&code, &variant.fields) {
            (Code::Own { .. }, _) => quote!(Self::#ident { .. }),
            (Code::OfFirstField, Fields::Unit) => {
                return Err(Error::new_spanned(ident, "there is no field with a code"));
            }
            (Code::OfFirstField, Fields::Unnamed(_)) => quote!(Self::#ident(inner, ..)),
            (Code::OfFirstField, Fields::Named(fields)) => {
                let first = fields.named.first().and_then(|field| field.ident.clone());
                let first = first.unwrap_or_else(|| format_ident!("code"));
                quote!(Self::#ident { #first: inner, .. })
            }
        };
        Ok(Self { pattern, code })
    }

    pub(crate) fn structure(input: &DeriveInput) -> syn::Result<Self> {
        Ok(Self {
            pattern: quote!(Self { .. }),
            code: Code::read(&input.attrs, &input.ident)?,
        })
    }

    /// Returns the arm of the match that returns the code.
    pub(crate) fn arm(&self) -> TokenStream {
        let pattern = &self.pattern;
        match &self.code {
            Code::Own { code, .. } => quote!(#pattern => #code),
            Code::OfFirstField => quote!(#pattern => inner.code()),
        }
    }

    /// Returns the entry in the list of codes, unless the code is that of a field.
    pub(crate) fn entry(&self) -> Option<TokenStream> {
        match &self.code {
            Code::Own { code, meaning } => Some(quote!((#code, #meaning))),
            Code::OfFirstField => None,
        }
    }
}

impl Code {
    fn read(attributes: &[Attribute], of: &syn::Ident) -> syn::Result<Self> {
        let attribute = attributes
            .iter()
            .find(|attribute| attribute.path().is_ident("code"));
        let attribute =
            attribute.ok_or_else(|| Error::new_spanned(of, "write `#[code = \"…\"]`"))?;
        match &attribute.meta {
            Meta::NameValue(meta)
                if let Expr::Lit(ExprLit {
                    lit: Lit::Str(code),
                    ..
                }) = &meta.value =>
            {
                if !is_code(&code.value()) {
                    return Err(Error::new_spanned(
                        code,
                        "a code is two words in lower case with a dot between them",
                    ));
                }
                let meaning = meaning(attributes);
                if meaning.is_empty() {
                    return Err(Error::new_spanned(of, "document what the code means"));
                }
                Ok(Self::Own {
                    code: code.clone(),
                    meaning,
                })
            }
            Meta::List(list) if list.tokens.to_string() == "transparent" => Ok(Self::OfFirstField),
            _ => Err(Error::new_spanned(
                attribute,
                "write `#[code = \"…\"]` or `#[code(transparent)]`",
            )),
        }
    }
}

/// Returns whether a text is two words in lower case with a dot between them.
fn is_code(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word
                .chars()
                .all(|character| matches!(character, 'a'..='z' | '0'..='9' | '_'))
    };
    text.split_once('.')
        .is_some_and(|(first, second)| is_word(first) && is_word(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(variant: &str) -> String {
        let variant = syn::parse_str(variant).unwrap();
        Coded::variant(&variant).err().unwrap().to_string()
    }

    #[test]
    fn a_code_is_two_words() {
        assert!(is_code("token.header_malformed") && is_code("a1.b2"));
        for text in [
            "", "token", "token.", ".token", "Token.a", "a.b.c", "a b.c", "1.a", "a.1",
        ] {
            assert!(!is_code(text), "{text}");
        }
    }

    #[test]
    fn a_variant_has_a_code_and_documentation() {
        assert_eq!(error("Missing"), "write `#[code = \"…\"]`");
        assert_eq!(
            error("#[code = \"a.b\"] Missing"),
            "document what the code means"
        );
        assert!(error("#[code = \"ab\"] Missing").starts_with("a code is two words"));
        assert!(error("#[code(other)] Missing(A)").ends_with("or `#[code(transparent)]`"));
        assert_eq!(
            error("#[code(transparent)] Missing"),
            "there is no field with a code"
        );
    }
}
