//! [`Setup`]: takes each answer from its option or from the user, and tests it.

mod broker;
mod proxy;
mod question;

use anyhow::{anyhow, bail};
use portcullis_config::plan::Plan;
use portcullis_discovery::Product;
use portcullis_doctor::{Report, Verdict};
use portcullis_jose::Algorithm;
use portcullis_metadata::{EscapedText, Issuer};
use portcullis_terminal::{counted, tell};
use tokio::runtime::Runtime;

use self::{
    proxy::free_port,
    question::{Question, Rejection},
};
use super::{
    answers::Answers,
    issuer::{self, Found},
    questions::Questions,
    source::kind_without_registration,
    typed_url,
    values::Values,
};
use crate::{cli, online_check};

/// The most answers to one question.
const MAX_ATTEMPTS: usize = 20;

/// The answers so far, and what is needed to get and test them.
pub(super) struct Setup<'a> {
    arguments: &'a cli::Init,
    product: Product,
    /// `None` without a terminal.
    questions: Option<Questions>,
    runtime: Runtime,
    answers: Answers,
    /// The number of problems that the user has not confirmed.
    problems: usize,
}

impl<'a> Setup<'a> {
    pub(super) fn new(
        arguments: &'a cli::Init,
        product: Product,
        questions: Option<Questions>,
    ) -> anyhow::Result<Self> {
        let runtime = crate::control_runtime()?;
        Ok(Self {
            arguments,
            product,
            questions,
            runtime,
            answers: Answers::default(),
            problems: 0,
        })
    }

    /// Gets and tests all answers. Fails if an option is invalid, or is missing without a terminal;
    /// if no answer is accepted after [`MAX_ATTEMPTS`]; and if the input ends or the output is
    /// closed.
    pub(super) fn ask_all(&mut self) -> anyhow::Result<()> {
        self.answers
            .set_trusted_proxies(&self.arguments.trusted_proxies)
            .map_err(|reason| anyhow!("--trusted-proxy: {reason}"))?;
        self.ask_base_url()?;
        self.ask_proxies()?;
        self.ask_upstream()?;
        self.ask_endpoint()?;
        self.ask_scopes()?;
        self.ask_issuer()
    }

    fn ask_base_url(&mut self) -> anyhow::Result<()> {
        let question = Question {
            text: "Base URL, which clients use",
            option: "--base-url",
            given: self.arguments.base_url.as_deref(),
            default: Some(Values::BASE_URL.to_owned()),
            is_optional: false,
        };
        self.answer(question, Self::set_base_url, Self::test_listener)
    }

    fn ask_upstream(&mut self) -> anyhow::Result<()> {
        let question = Question {
            text: "MCP server to protect (upstream)",
            option: "--upstream",
            given: self.arguments.upstream.as_deref(),
            default: Some(Values::UPSTREAM.to_owned()),
            is_optional: false,
        };
        self.answer(question, Self::set_upstream, Self::test_upstream)
    }

    fn ask_endpoint(&mut self) -> anyhow::Result<()> {
        let question = Question {
            text: "Endpoint, the path that clients use",
            option: "--endpoint",
            given: self.arguments.endpoint.as_deref(),
            default: Some(self.answers.default_endpoint()),
            is_optional: true,
        };
        self.answer(
            question,
            |setup, text| Ok(setup.answers.set_endpoint(text)?),
            |_| Ok(0),
        )
    }

    fn ask_scopes(&mut self) -> anyhow::Result<()> {
        let given = self.arguments.scopes.join(" ");
        let question = Question {
            text: "Scopes that every token must have, separated by spaces",
            option: "--scope",
            given: (!self.arguments.scopes.is_empty()).then_some(&*given),
            default: Some(Values::SCOPE.to_owned()),
            is_optional: true,
        };
        self.answer(
            question,
            |setup, text| Ok(setup.answers.set_scopes([text])?),
            |_| Ok(0),
        )
    }

    fn ask_issuer(&mut self) -> anyhow::Result<()> {
        if self.set_provider_without_issuer()? {
            return Ok(());
        }
        let question = Question {
            text: "Authorization server: its issuer, or the URL of its metadata",
            option: "--issuer",
            given: self.arguments.issuer.as_deref(),
            default: self.proposed_issuer()?,
            is_optional: false,
        };
        self.answer(question, Self::set_issuer, |setup| {
            match setup.answers.values().broker {
                Some(_) => setup.test_provider(),
                None => setup.test(online_check::Part::Issuers),
            }
        })
    }

    /// Returns the values of the file and their plan, if the file can be written. Fails with
    /// problems, unless the user confirms or has given `--force`.
    pub(super) fn finish(mut self) -> anyhow::Result<(Values, Plan)> {
        let plan = self.plan()?;
        if self.problems > 0 && !self.arguments.force {
            let problems = counted(self.problems, "problem");
            let Some(questions) = &mut self.questions else {
                bail!(
                    "nothing is written because of {problems}; correct that, or give --force to write it anyway"
                )
            };
            if !questions.confirm(&format!("{problems} above. Write the file anyway?"))? {
                bail!("nothing is written because of {problems}")
            }
        }
        Ok((self.answers.into_values(), plan))
    }

    /// Takes the answer of the option, or asks until there is a valid one. Then tests it; the user
    /// can give another answer.
    fn answer(
        &mut self,
        question: Question<'_>,
        set: impl Fn(&mut Self, &str) -> Result<(), Rejection>,
        test: impl Fn(&mut Self) -> anyhow::Result<usize>,
    ) -> anyhow::Result<()> {
        let Question {
            text,
            option,
            given,
            mut default,
            is_optional,
        } = question;
        let uses_default = is_optional && self.questions.is_none();
        if let Some(given) = given.or(default.as_deref().filter(|_| uses_default)) {
            set(self, given).map_err(|rejection| rejection.into_error(option))?;
            self.problems += test(self)?;
            return Ok(());
        }
        for _ in 0..MAX_ATTEMPTS {
            let Some(questions) = &mut self.questions else {
                bail!("give {option}")
            };
            let answer = questions.ask(text, default.as_deref())?;
            match set(self, &answer) {
                Ok(()) => {}
                Err(Rejection::Invalid { reason, proposal }) => {
                    self.tell_user(&reason)?;
                    default = proposal.or(default);
                    continue;
                }
                Err(Rejection::Failed(error)) => return Err(error),
            }
            if test(self)? == 0 || self.is_confirmed("Keep this answer?")? {
                return Ok(());
            }
        }
        bail!("no answer was accepted after {MAX_ATTEMPTS} attempts; nothing is written")
    }

    fn set_base_url(&mut self, text: &str) -> Result<(), Rejection> {
        self.answers.set_base_url(text)?;
        // Those of an earlier answer end with it.
        self.answers
            .set_trusted_proxies(&self.arguments.trusted_proxies)?;
        if let Some(listen) = self.arguments.listen {
            self.answers.set_listen(listen);
            return Ok(());
        }
        self.find_free_port();
        Ok(())
    }

    fn set_upstream(&mut self, text: &str) -> Result<(), Rejection> {
        let listen = self.answers.values().listen;
        self.answers.set_upstream(text)?;
        if self.answers.values().listen != listen {
            self.find_free_port();
        }
        Ok(())
    }

    /// Behind a proxy, which can be given any port, replaces a port in use by the next free one.
    fn find_free_port(&mut self) {
        if !self.answers.values().is_https() || self.arguments.offline {
            return;
        }
        let listen = self.answers.values().listen;
        let port = free_port(listen).unwrap_or(listen.port());
        self.answers.set_port(port);
    }

    /// Sets the issuer, or the provider at which users sign in. An issuer without metadata is set
    /// as written, and its test reports the problem.
    fn set_issuer(&mut self, text: &str) -> Result<(), Rejection> {
        if text.is_empty() {
            let reason = "the issuer is needed, which clients get their tokens from, such as https://auth.example.com";
            return Err(reason.to_owned().into());
        }
        let text = &typed_url::for_clients(text);
        let entered = issuer::parse(text).ok();
        let kind = entered.as_ref().and_then(kind_without_registration);
        if let (Some(entered), Some(kind)) = (&entered, kind)
            && self.uses_broker(&format!(
                "MCP clients cannot register at {}",
                kind.display_name()
            ))?
        {
            return self.set_entered_provider(kind, entered);
        }
        if self.arguments.offline {
            return self.set_found_issuer(issuer::as_written(text)?, Vec::new());
        }
        tell("looking for the metadata of the issuer");
        match self.runtime.block_on(issuer::find(text, self.product)) {
            Ok(Found::Issuer {
                issuer,
                algorithms,
                registers_clients,
            }) => {
                tell(format_args!(
                    "the issuer is {}",
                    EscapedText(issuer.as_str())
                ));
                if kind.is_none()
                    && !registers_clients
                    && self.uses_broker(&format!(
                        "MCP clients cannot register at {issuer}: its metadata offers neither registration nor client ID \
                         metadata documents"
                    ))?
                {
                    return self.set_provider(&issuer);
                }
                self.set_found_issuer(issuer, algorithms)
            }
            Ok(Found::Other { issuer, reason }) => {
                // First validates the issuer: for the template of a provider, that error is more
                // precise.
                self.answers.set_issuer(issuer.clone(), Vec::new())?;
                let reason = format!("{reason}; give that issuer if tokens have this `iss`");
                Err(Rejection::Invalid {
                    reason,
                    proposal: Some(issuer.as_str().to_owned()),
                })
            }
            Err(reason) => match issuer::as_written(text) {
                Ok(issuer) => self.set_found_issuer(issuer, Vec::new()),
                Err(_) => Err(reason.into()),
            },
        }
    }

    /// Sets the exact issuer, or the provider with this issuer if the options want a broker.
    fn set_found_issuer(
        &mut self,
        issuer: Issuer,
        algorithms: Vec<Algorithm>,
    ) -> Result<(), Rejection> {
        if self.arguments.wants_broker() {
            return self.set_provider(&issuer);
        }
        Ok(self.answers.set_issuer(issuer, algorithms)?)
    }

    /// The issuer that the upstream itself names, if it requires tokens.
    fn proposed_issuer(&mut self) -> anyhow::Result<Option<String>> {
        if self.arguments.offline || self.arguments.issuer.is_some() {
            return Ok(None);
        }
        let plan = self.plan()?;
        let issuers = self
            .runtime
            .block_on(online_check::upstream_issuers(&plan, self.product));
        if !issuers.is_empty() {
            let names = issuers
                .iter()
                .map(Issuer::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            self.tell_user(&format!(
                "the MCP server names as its authorization server: {names}"
            ))?;
        }
        Ok(issuers.first().map(|issuer| issuer.as_str().to_owned()))
    }

    fn test_upstream(&mut self) -> anyhow::Result<usize> {
        self.answers.set_sessions_off(false);
        let Some(report) = self.examine(online_check::Part::Upstreams)? else {
            return Ok(0);
        };
        self.answers
            .set_sessions_off(online_check::suggests_sessions_off(&report));
        Ok(report.count(Verdict::Problem))
    }

    /// Tests a part. Returns the number of problems.
    fn test(&mut self, part: online_check::Part) -> anyhow::Result<usize> {
        Ok(self
            .examine(part)?
            .map_or(0, |report| report.count(Verdict::Problem)))
    }

    /// Tests a part and prints the findings. `None` without requests.
    fn examine(&mut self, part: online_check::Part) -> anyhow::Result<Option<Report>> {
        if self.arguments.offline {
            return Ok(None);
        }
        let plan = self.plan()?;
        let parts = [part];
        let base_url = &self.answers.values().base_url;
        let examined = online_check::examine_and_print(&parts, &plan, base_url, self.product, true);
        Ok(Some(self.runtime.block_on(examined)?))
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        self.answers.plan().map_err(|error| anyhow!(error))
    }

    fn tell_user(&mut self, text: &str) -> anyhow::Result<()> {
        match &mut self.questions {
            Some(questions) => Ok(questions.tell(text)?),
            None => Ok(()),
        }
    }

    fn is_confirmed(&mut self, question: &str) -> anyhow::Result<bool> {
        self.questions
            .as_mut()
            .map_or(Ok(false), |questions| questions.confirm(question))
    }
}

#[cfg(test)]
mod tests;
