/// The owner of a session. Two owners are equal if they are the same variant and all their strings
/// are identical, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    /// The subject of a token, with the issuer and the client of the token.
    Subject {
        /// The token's `iss`.
        issuer: &'a str,
        /// The token's `sub`.
        subject: &'a str,
        /// The client that the token was issued to, if the token names one.
        client: Option<&'a str>,
    },
    /// A client whose token has no subject. It never equals a subject of the same name.
    Client {
        /// The token's `iss`.
        issuer: &'a str,
        /// The client that the token was issued to.
        client: &'a str,
    },
    /// The owner of all sessions of a resource without authentication. The limit per owner does not
    /// apply.
    Anonymous,
}

/// The encoding of an owner: the variant, the lengths of the strings, and the strings. Different
/// owners have different encodings, and no encoding is a prefix of another.
pub(crate) struct Encoded<'a> {
    head: [u8; 25],
    texts: [&'a str; 3],
}

impl<'a> Owner<'a> {
    /// Returns the issuer; `None` for [`Anonymous`](Self::Anonymous).
    pub fn issuer(&self) -> Option<&'a str> {
        match *self {
            Self::Subject { issuer, .. } | Self::Client { issuer, .. } => Some(issuer),
            Self::Anonymous => None,
        }
    }

    /// Returns the subject; `None` for a client's own sessions and for
    /// [`Anonymous`](Self::Anonymous).
    pub fn subject(&self) -> Option<&'a str> {
        match *self {
            Self::Subject { subject, .. } => Some(subject),
            Self::Client { .. } | Self::Anonymous => None,
        }
    }

    /// Returns the client; `None` if the token does not name one, and for
    /// [`Anonymous`](Self::Anonymous).
    pub fn client(&self) -> Option<&'a str> {
        match *self {
            Self::Subject { client, .. } => client,
            Self::Client { client, .. } => Some(client),
            Self::Anonymous => None,
        }
    }

    /// Returns the encoding. Allocates nothing.
    pub(crate) fn encode(self) -> Encoded<'a> {
        let (variant, texts) = match self {
            Self::Anonymous => (0, [""; 3]),
            Self::Client { issuer, client } => (1, [issuer, "", client]),
            Self::Subject {
                issuer,
                subject,
                client: None,
            } => (2, [issuer, subject, ""]),
            Self::Subject {
                issuer,
                subject,
                client: Some(client),
            } => (3, [issuer, subject, client]),
        };
        let mut head = [variant; 25];
        for (length, text) in head[1..].chunks_exact_mut(8).zip(texts) {
            length.copy_from_slice(&(text.len() as u64).to_le_bytes());
        }
        Encoded { head, texts }
    }

    /// Returns the owner with this encoding; [`Anonymous`](Self::Anonymous) if the encoding is not
    /// valid.
    pub(crate) fn decode(encoded: &'a [u8]) -> Self {
        Self::decoded(encoded).unwrap_or(Self::Anonymous)
    }

    fn decoded(encoded: &'a [u8]) -> Option<Self> {
        let (head, mut rest) = encoded.split_first_chunk::<25>()?;
        let mut texts = [""; 3];
        for (length, text) in head[1..].chunks_exact(8).zip(&mut texts) {
            let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
            let (bytes, after) = rest.split_at_checked(length)?;
            (*text, rest) = (str::from_utf8(bytes).ok()?, after);
        }
        let [issuer, subject, client] = texts;
        match head[0] {
            1 => Some(Self::Client { issuer, client }),
            2 => Some(Self::Subject {
                issuer,
                subject,
                client: None,
            }),
            3 => Some(Self::Subject {
                issuer,
                subject,
                client: Some(client),
            }),
            _ => None,
        }
    }

    /// Returns whether `encoded` is this owner's encoding. Allocates nothing.
    pub(crate) fn is_encoded_as(self, encoded: &[u8]) -> bool {
        self.encode()
            .parts()
            .into_iter()
            .try_fold(encoded, <[u8]>::strip_prefix)
            .is_some_and(<[u8]>::is_empty)
    }
}

impl Encoded<'_> {
    /// Returns the parts of the encoding in order.
    pub(crate) fn parts(&self) -> [&[u8]; 4] {
        let [issuer, subject, client] = self.texts.map(str::as_bytes);
        [&self.head, issuer, subject, client]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(owner: Owner<'_>) -> Vec<u8> {
        owner.encode().parts().concat()
    }

    /// E7: a subject never equals a client of the same name, and a missing client never equals an
    /// empty one.
    #[test]
    fn different_variants_are_never_equal() {
        let owners = [
            Owner::Anonymous,
            Owner::Client {
                issuer: "i",
                client: "x",
            },
            Owner::Subject {
                issuer: "i",
                subject: "x",
                client: None,
            },
            Owner::Subject {
                issuer: "i",
                subject: "x",
                client: Some(""),
            },
            Owner::Subject {
                issuer: "i",
                subject: "",
                client: Some("x"),
            },
            Owner::Subject {
                issuer: "ix",
                subject: "",
                client: None,
            },
        ];
        for one in owners {
            for other in owners {
                assert_eq!(
                    one.is_encoded_as(&encoded(other)),
                    one == other,
                    "{one:?} {other:?}"
                );
            }
        }
    }

    #[test]
    fn owners_have_names() {
        let names = |owner: Owner<'static>| (owner.issuer(), owner.subject(), owner.client());
        assert_eq!(names(Owner::Anonymous), (None, None, None));
        assert_eq!(
            names(Owner::Client {
                issuer: "i",
                client: "c"
            }),
            (Some("i"), None, Some("c"))
        );
        let subject = |client| Owner::Subject {
            issuer: "i",
            subject: "s",
            client,
        };
        assert_eq!(names(subject(None)), (Some("i"), Some("s"), None));
        assert_eq!(names(subject(Some("c"))), (Some("i"), Some("s"), Some("c")));
    }

    /// A variant of owners, and the names in it.
    #[derive(Debug)]
    struct Names {
        variant: u8,
        issuer: String,
        subject: String,
        client: String,
    }

    impl Names {
        fn owner(&self) -> Owner<'_> {
            let Self {
                variant,
                issuer,
                subject,
                client,
            } = self;
            match variant {
                0 => Owner::Anonymous,
                1 => Owner::Client { issuer, client },
                2 => Owner::Subject {
                    issuer,
                    subject,
                    client: None,
                },
                _ => Owner::Subject {
                    issuer,
                    subject,
                    client: Some(client),
                },
            }
        }
    }

    fn any_names() -> impl Strategy<Value = Names> {
        let name = "[ab]{0,3}";
        (0_u8..4, name, name, name).prop_map(|(variant, issuer, subject, client)| Names {
            variant,
            issuer,
            subject,
            client,
        })
    }

    proptest! {
        /// E7: two owners have the same encoding if and only if they are equal.
        #[test]
        fn encoding_is_unambiguous(one in any_names(), other in any_names()) {
            let one = one.owner();
            let other = other.owner();
            prop_assert_eq!(encoded(one) == encoded(other), one == other);
            prop_assert_eq!(one.is_encoded_as(&encoded(other)), one == other);
            let kept = encoded(one);
            prop_assert_eq!(Owner::decode(&kept), one);
        }
    }
}
