//! [`Layout`]: what all pages of a broker have in common.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_metadata::{HtmlText, Issuer};
use sha2::{Digest, Sha256};

use crate::{
    PageSettings,
    pages::{
        color::Color,
        headers::{Forms, Page},
    },
};

const STYLE: &str = include_str!("page.css");

/// The accent of an operator without a color, in the light and in the dark scheme.
const DEFAULT_ACCENT: Schemes = Schemes {
    light: Color([0x24, 0x56, 0xc9]),
    dark: Color([0x7b, 0xa3, 0xff]),
};
/// `--card` and `--soft` of the style sheet.
const CARD: Schemes = Schemes {
    light: Color::WHITE,
    dark: Color([0x18, 0x1e, 0x27]),
};
const SOFT: Schemes = Schemes {
    light: Color([0x5b, 0x66, 0x78]),
    dark: Color([0x9a, 0xa7, 0xb9]),
};
/// The minimum contrast of the boundary of a button (WCAG 2.2, 1.4.11).
const BOUNDARY_CONTRAST: f64 = 3.0;

/// What all pages have in common: the operator's name, logo and colors.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The name of the service, escaped.
    service_name: String,
    /// The `img` element of the logo, or nothing.
    logo: String,
    style: String,
    style_source: Arc<str>,
}

/// A color in both color schemes.
#[derive(Clone, Copy)]
struct Schemes {
    light: Color,
    dark: Color,
}

impl Layout {
    /// Creates the layout of one broker. Without a name, the service is called as its host.
    pub(crate) fn new(settings: &PageSettings, issuer: &Issuer) -> Self {
        let name = settings
            .name
            .as_deref()
            .unwrap_or_else(|| issuer.url().authority());
        // An SVG runs no script in an `img` element and loads nothing.
        let logo = settings.logo.as_ref().map(|logo| {
            format!(
                r#"<img src="data:{};base64,{}" alt="">"#,
                HtmlText(logo.media_type),
                STANDARD.encode(&logo.bytes)
            )
        });
        let accent = settings.accent.map_or(DEFAULT_ACCENT, |accent| Schemes {
            light: Color(accent),
            dark: Color(accent),
        });
        let style = format!(
            "\n:root {{ {} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n{STYLE}",
            accent_properties(accent.light, CARD.light, SOFT.light),
            accent_properties(accent.dark, CARD.dark, SOFT.dark),
        );
        let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
        Self {
            service_name: HtmlText(name).to_string(),
            logo: logo.unwrap_or_default(),
            style,
            style_source: format!("'sha256-{hash}'").into(),
        }
    }

    /// Returns the page with a title and a body, both of which are HTML.
    pub(super) fn page(&self, title: &str, body: &str, forms: Forms) -> Page {
        self.page_with_head(title, "", body, forms)
    }

    /// As [`page`](Self::page), with an element for the head.
    pub(super) fn page_with_head(&self, title: &str, head: &str, body: &str, forms: Forms) -> Page {
        let Self {
            service_name,
            logo,
            style,
            ..
        } = self;
        let html = format!(
            r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · {service_name}</title>
{head}<style>{style}</style>
</head>
<body>
<header>{logo}<span>{service_name}</span></header>
<main>
{body}
</main>
</body>
</html>
"#
        );
        Page {
            html,
            style_source: Arc::clone(&self.style_source),
            forms,
        }
    }
}

/// Returns the properties of the style sheet that depend on the accent.
fn accent_properties(accent: Color, card: Color, soft: Color) -> String {
    let edge = if accent.contrast(card) >= BOUNDARY_CONTRAST {
        accent
    } else {
        soft
    };
    format!(
        "--accent: {accent}; --accent-over: {}; --accent-edge: {edge}; --on-accent: {};",
        accent.emphasized(),
        accent.text(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logo, pages::testing};

    fn rendered(settings: &PageSettings) -> Page {
        Layout::new(settings, &testing::issuer()).page("Title", "<h1>Title</h1>", Forms::None)
    }

    /// The browser applies the style sheet only if its hash is that of the exact text.
    #[test]
    fn the_policy_names_the_hash_of_the_style_sheet() {
        for accent in [None, Some([255, 220, 0])] {
            let page = rendered(&PageSettings {
                accent,
                ..PageSettings::default()
            });
            let (_, rest) = page.html.split_once("<style>").unwrap();
            let (style, _) = rest.split_once("</style>").unwrap();
            let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
            assert_eq!(*page.style_source, format!("'sha256-{hash}'"));
        }
    }

    #[test]
    fn the_style_sheet_has_the_colors_that_contrast_is_computed_for() {
        for color in [CARD.light, CARD.dark, SOFT.light, SOFT.dark] {
            let text = color.to_string();
            let short = text.replace("#ffffff", "#fff");
            assert!(STYLE.contains(&format!(": {short};")), "{color}");
        }
    }

    #[test]
    fn the_operators_accent_is_used_with_legible_text() {
        let page = rendered(&PageSettings {
            accent: Some([255, 220, 0]),
            ..PageSettings::default()
        });
        assert!(page.html.contains("--accent: #ffdc00; --accent-over: #ffe12a; --accent-edge: #5b6678; --on-accent: #000000;"));
    }

    #[test]
    fn a_logo_is_an_image_without_an_address() {
        let page = rendered(&PageSettings {
            logo: Some(Logo {
                media_type: "image/svg+xml",
                bytes: b"<svg><script/></svg>".to_vec(),
            }),
            ..PageSettings::default()
        });
        assert!(page.html.contains(
            r#"<img src="data:image/svg+xml;base64,PHN2Zz48c2NyaXB0Lz48L3N2Zz4=" alt="">"#
        ));
        testing::assert_well_formed(&page.html);
    }

    #[test]
    fn the_name_is_escaped_and_otherwise_the_host() {
        let page = rendered(&PageSettings {
            name: Some("R&D <tools>".into()),
            ..PageSettings::default()
        });
        assert!(
            page.html
                .contains("<title>Title · R&amp;D &lt;tools&gt;</title>")
        );
        assert!(page.html.contains("<span>R&amp;D &lt;tools&gt;</span>"));
        let page = rendered(&PageSettings::default());
        assert!(page.html.contains("<title>Title · mcp.example.com</title>"));
    }
}
