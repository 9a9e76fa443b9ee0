use std::io::{self, BufRead, IsTerminal as _, Read as _, Write};

use anyhow::{Context as _, bail};
use portcullis_metadata::EscapedText;
use portcullis_terminal::is_yes;

/// The maximum length of an answer in bytes.
const MAX_ANSWER: u64 = 4096;

/// Asks questions and reads the answers, one per line.
pub(super) struct Questions {
    input: Box<dyn BufRead>,
    output: Box<dyn Write>,
}

impl Questions {
    /// Asks on standard error, if that and standard input are a terminal.
    pub(super) fn in_terminal() -> Option<Self> {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        is_terminal.then(|| Self::new(io::stdin().lock(), io::stderr()))
    }

    pub(super) fn new(input: impl BufRead + 'static, output: impl Write + 'static) -> Self {
        Self {
            input: Box::new(input),
            output: Box::new(output),
        }
    }

    /// Returns the answer without spaces around it, or the default if it is empty. Without a
    /// default, an empty answer is returned. Fails when the input ends.
    pub(super) fn ask(&mut self, question: &str, default: Option<&str>) -> anyhow::Result<String> {
        match default {
            Some(default) => write!(self.output, "{question} [{}]: ", EscapedText(default))?,
            None => write!(self.output, "{question}: ")?,
        }
        let answer = self.line()?;
        let answer = answer.trim();
        Ok(if answer.is_empty() {
            default.unwrap_or_default().to_owned()
        } else {
            answer.to_owned()
        })
    }

    /// Whether the answer is yes. An empty answer means no. Fails when the input ends.
    pub(super) fn confirm(&mut self, question: &str) -> anyhow::Result<bool> {
        write!(self.output, "{question} [y/N] ")?;
        Ok(is_yes(&self.line()?))
    }

    /// Whether the answer is yes. An empty answer means yes. Asks again after an answer that is
    /// neither yes nor no. Fails when the input ends.
    pub(super) fn agree(&mut self, question: &str) -> anyhow::Result<bool> {
        loop {
            write!(self.output, "{question} [Y/n] ")?;
            let answer = self.line()?;
            if answer.trim().is_empty() || is_yes(&answer) {
                return Ok(true);
            }
            if matches!(answer.trim().to_ascii_lowercase().as_str(), "n" | "no") {
                return Ok(false);
            }
            self.tell("Answer y or n.")?;
        }
    }

    /// Shows a line. Fails when the output is closed.
    pub(super) fn tell(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.output, "{}", EscapedText(text))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        self.output.flush()?;
        let mut line = String::new();
        let read = (&mut self.input)
            .take(MAX_ANSWER)
            .read_line(&mut line)
            .context("cannot read the answer")?;
        if read == 0 {
            // Ctrl-D leaves the cursor behind the question.
            writeln!(self.output)?;
            bail!(
                "the input ended, and nothing is written; run it again, or give the answers as options (see --help)"
            );
        }
        if !line.ends_with('\n') && read as u64 == MAX_ANSWER {
            bail!("the answer has more than {MAX_ANSWER} bytes; nothing is written");
        }
        Ok(line)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::{io::Cursor, sync::Arc};

    use parking_lot::Mutex;

    use super::*;

    /// Collects what is shown.
    #[derive(Clone, Default)]
    pub(crate) struct Shown(Arc<Mutex<Vec<u8>>>);

    impl Shown {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }
    }

    impl Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Questions to which these lines are the answers.
    pub(crate) fn answered(lines: &'static str) -> (Questions, Shown) {
        let shown = Shown::default();
        (Questions::new(Cursor::new(lines), shown.clone()), shown)
    }

    #[test]
    fn an_empty_answer_is_the_default() {
        let (mut questions, shown) = answered("\n  https://a.example \n\n");
        assert_eq!(
            questions
                .ask("Base URL", Some("http://127.0.0.1:3000"))
                .unwrap(),
            "http://127.0.0.1:3000"
        );
        assert_eq!(
            questions
                .ask("Base URL", Some("http://127.0.0.1:3000"))
                .unwrap(),
            "https://a.example"
        );
        assert_eq!(questions.ask("Issuer", None).unwrap(), "");
        assert!(
            shown
                .text()
                .starts_with("Base URL [http://127.0.0.1:3000]: "),
            "{}",
            shown.text()
        );
    }

    #[test]
    fn only_yes_confirms() {
        let (mut questions, _) = answered("y\nYES\n\nn\nyeah\n");
        let answers: Vec<bool> = (0..5)
            .map(|_| questions.confirm("Write?").unwrap())
            .collect();
        assert_eq!(answers, [true, true, false, false, false]);
    }

    #[test]
    fn an_empty_answer_agrees() {
        let (mut questions, shown) = answered("\ny\nn\nyeah\nNO\n");
        let answers: Vec<bool> = (0..4)
            .map(|_| questions.agree("Use it?").unwrap())
            .collect();
        assert_eq!(answers, [true, true, false, false]);
        assert!(shown.text().contains("Answer y or n."), "{}", shown.text());
    }

    #[test]
    fn the_end_of_the_input_is_an_error() {
        let (mut questions, _) = answered("");
        let error = questions.ask("Issuer", None).unwrap_err().to_string();
        assert!(error.contains("nothing is written"), "{error}");
        let long = Box::leak("x".repeat(5000).into_boxed_str());
        let (mut questions, _) = answered(long);
        assert!(
            questions
                .ask("Issuer", None)
                .unwrap_err()
                .to_string()
                .contains("4096")
        );
    }

    /// J8: defaults that come from servers are escaped.
    #[test]
    fn defaults_are_escaped() {
        let (mut questions, shown) = answered("\n");
        questions
            .ask("Issuer", Some("https://a.example/\u{1b}[2J"))
            .unwrap();
        questions.tell("a\u{1b}b").unwrap();
        assert!(!shown.text().contains('\u{1b}'), "{:?}", shown.text());
    }
}
