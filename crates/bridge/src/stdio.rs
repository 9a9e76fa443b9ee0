//! Standard input and output: the streams, reading lines, writing lines.

pub(crate) mod line_reader;
pub(crate) mod line_writer;
pub(crate) mod oversized_line;
pub(crate) mod streams;
