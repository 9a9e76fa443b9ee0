//! The changes of a text, for display: changed lines with two lines of context, and secrets masked.

use std::ops::Range;

use super::edit::{Edit, applied};

/// The number of context lines before and after a change.
const CONTEXT: usize = 2;

/// The lines of the difference, each prefixed with `-`, `+` or a space.
pub(super) fn diff(text: &str, edits: &[Edit], masks: &[Edit]) -> Vec<String> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let line_of = |at: usize| {
        starts
            .partition_point(|start| *start <= at)
            .saturating_sub(1)
    };
    let lines_of =
        |span: &Range<usize>| line_of(span.start)..line_of(span.end.max(span.start + 1) - 1) + 1;
    let end_of = |line: usize| starts.get(line).copied().unwrap_or(text.len());
    // Masks have the same number of lines as the text that they hide.
    let masked = applied(text, 0..text.len(), masks, |mask| &mask.shown);
    let masked: Vec<&str> = masked.lines().collect();
    let unchanged: Vec<Edit> = masks
        .iter()
        .filter(|mask| {
            !edits
                .iter()
                .any(|edit| edit.span.start < mask.span.end && mask.span.start < edit.span.end)
        })
        .cloned()
        .collect();
    let new: Vec<Edit> = edits.iter().chain(&unchanged).cloned().collect();

    let mut output = Vec::new();
    let mut shown_to = 0;
    let groups = groups(edits, masks, lines_of);
    for (index, group) in groups.iter().enumerate() {
        let from = group.start.saturating_sub(CONTEXT).max(shown_to);
        if from > shown_to || index == 0 {
            output.push(format!("@@ line {} @@", from + 1));
        }
        let context = |lines: Range<usize>| {
            masked
                .get(lines)
                .unwrap_or_default()
                .iter()
                .map(|line| format!(" {line}"))
        };
        output.extend(context(from..group.start.min(masked.len())));
        output.extend(
            masked
                .get(group.start..group.end.min(masked.len()))
                .unwrap_or_default()
                .iter()
                .map(|line| format!("-{line}")),
        );
        let part = applied(text, end_of(group.start)..end_of(group.end), &new, |edit| {
            &edit.shown
        });
        output.extend(part.lines().map(|line| format!("+{line}")));
        let next = groups
            .get(index + 1)
            .map_or(masked.len(), |next| next.start);
        shown_to = (group.end + CONTEXT).min(next).min(masked.len());
        output.extend(context(group.end.min(shown_to)..shown_to));
    }
    output
}

/// The ranges of changed lines. A mask is not split.
fn groups(
    edits: &[Edit],
    masks: &[Edit],
    lines_of: impl Fn(&Range<usize>) -> Range<usize>,
) -> Vec<Range<usize>> {
    let mut lines: Vec<Range<usize>> = edits.iter().map(|edit| lines_of(&edit.span)).collect();
    let masked: Vec<Range<usize>> = masks
        .iter()
        .map(|mask| lines_of(&mask.span))
        .filter(|lines| lines.len() > 1)
        .collect();
    for line in &mut lines {
        for mask in &masked {
            if mask.start < line.end && line.start < mask.end {
                *line = mask.start.min(line.start)..mask.end.max(line.end);
            }
        }
    }
    lines.sort_by_key(|lines| lines.start);
    let mut groups: Vec<Range<usize>> = Vec::new();
    for lines in lines {
        match groups.last_mut() {
            Some(last) if lines.start <= last.end => last.end = last.end.max(lines.end),
            _ => groups.push(lines),
        }
    }
    groups
}
