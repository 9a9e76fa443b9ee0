/// The names of the keys and channels of one deployment.
///
/// All names begin with the prefix in braces, so that the keys of a script are in one hash slot.
#[derive(Debug)]
pub(crate) struct Keys {
    /// A hash: the run id of the server process, and the
    /// [generation](super::generation::Generation) of the data.
    pub(crate) generation: String,
    /// A hash: the last beat of each replica.
    pub(crate) replicas: String,
    /// A sorted set: the [records](super::record::Record) by their time, and the generation.
    pub(crate) records: String,
    /// A sorted set: the ids of sessions by their last use.
    pub(crate) last_uses: String,
    /// The channel of messages to all replicas.
    pub(crate) channel: String,
}

impl Keys {
    /// Returns the names that begin with this prefix.
    pub(crate) fn new(prefix: &str) -> Self {
        let name = |name: &str| name_with(prefix, name);
        Self {
            generation: name("generation"),
            replicas: name("replicas"),
            records: name("session-ends"),
            last_uses: name("session-uses"),
            channel: name("session-events"),
        }
    }

    /// Returns the channel of messages to one connection.
    pub(crate) fn channel_of(&self, connection: &str) -> String {
        format!("{}:{connection}", self.channel)
    }
}

/// Returns a name that begins with this prefix.
pub(crate) fn name_with(prefix: &str, name: &str) -> String {
    format!("{{{prefix}}}:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names are those of earlier versions, whose data remains in use.
    #[test]
    fn names_begin_with_the_prefix() {
        let Keys {
            generation,
            replicas,
            records,
            last_uses,
            channel,
        } = &Keys::new("p");
        let names = [generation, replicas, records, last_uses, channel];
        let expected = [
            "{p}:generation",
            "{p}:replicas",
            "{p}:session-ends",
            "{p}:session-uses",
            "{p}:session-events",
        ];
        assert_eq!(names, expected);
        assert_eq!(Keys::new("p").channel_of("1e"), "{p}:session-events:1e");
    }
}
