//! `portcullis idp`: the development authorization server alone.

use portcullis_devidp::{DevIdp, DevIdpSettings};

use crate::{cli, serve};

pub(crate) fn run(arguments: &cli::Idp) -> anyhow::Result<()> {
    super::control_runtime()?.block_on(async {
        let mut shutdown = serve::on_signal()?;
        let settings = DevIdpSettings {
            listen: arguments.listen,
            auto_consent: arguments.auto_consent,
            ..DevIdpSettings::default()
        };
        let idp = DevIdp::bind(settings).await?;
        super::print(format_args!("development authorization server: {}", idp.issuer()))?;
        idp.serve(async move {
            // An error means that nobody can ask for the end any more, which is one.
            let _ = shutdown.wait_for(|shutdown| *shutdown).await;
        })
        .await;
        Ok(())
    })
}
