//! Escaping of text from other parties in log lines.

use std::{
    fmt::{self, Debug, Write as _},
    io::{self, Write},
};

use portcullis_metadata::EscapedText;
use tracing::field::{Field, Visit};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{FormatFields, MakeWriter, format::Writer},
};

use crate::json::write_escaped;

/// Formats the fields of events and spans for people: `message name=value name="value"`, each value
/// as [`EscapedText`].
pub(super) struct EscapedFields;

impl<'w> FormatFields<'w> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut visitor = FieldsVisitor {
            writer,
            is_first: true,
            result: Ok(()),
        };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct FieldsVisitor<'w> {
    writer: Writer<'w>,
    is_first: bool,
    result: fmt::Result,
}

impl FieldsVisitor<'_> {
    fn write(&mut self, name: &str, value: &dyn Debug) -> fmt::Result {
        if !std::mem::replace(&mut self.is_first, false) {
            self.writer.write_char(' ')?;
        }
        if name != "message" {
            if self.writer.has_ansi_escapes() {
                // The name in italics, the sign dimmed.
                write!(self.writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m")?;
            } else {
                write!(self.writer, "{name}=")?;
            }
        }
        write!(EscapingFormatter(&mut self.writer), "{value:?}")
    }
}

impl Visit for FieldsVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Metadata that the bridge from the `log` crate adds.
        let is_metadata = field.name().starts_with("log.");
        if self.result.is_ok() && !is_metadata {
            self.result = self.write(field.name(), value);
        }
    }
}

/// Writes text as [`EscapedText`].
struct EscapingFormatter<'a, W>(&'a mut W);

impl<W: fmt::Write> fmt::Write for EscapingFormatter<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write!(self.0, "{}", EscapedText(text))
    }
}

/// Makes writers of JSON lines that write the characters of [`EscapedText`] as `\uXXXX`. The value
/// of the line stays the same.
pub(super) struct EscapedJson<M>(pub(super) M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for EscapedJson<M> {
    type Writer = JsonWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        JsonWriter(self.0.make_writer())
    }
}

/// Escapes whole lines, one per write.
pub(super) struct JsonWriter<W>(W);

impl<W: Write> Write for JsonWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // The line end is not escaped. A JSON line contains no other control character.
        let (text, end) = line.split_at(line.len() - usize::from(line.ends_with(b"\n")));
        match std::str::from_utf8(text) {
            Ok(text) if text.contains(EscapedText::escapes) => {
                let mut escaped = Vec::with_capacity(line.len() + 16);
                write_escaped(&mut escaped, text)?;
                escaped.extend_from_slice(end);
                self.0.write_all(&escaped)?;
            }
            _ => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
