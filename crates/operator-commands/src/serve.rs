//! `portcullis serve`.

use portcullis_config::{ConfigErrors, Overrides, Places, plan::Plan};
use portcullis_serve::{
    AdminListener, ConfigSource, Listeners, PassedListener, Persistence, Program, ServeError,
    Server, Signals, bind, log_warnings,
};
use portcullis_telemetry::{AccessLog, LogFormat};

use crate::cli;

pub(crate) fn run(
    arguments: &cli::Serve,
    program: Program,
    format: LogFormat,
) -> anyhow::Result<()> {
    // Before any thread exists that could read the environment.
    let passed = PassedListener::from_environment()?;
    let runtime = crate::control_runtime()?;
    // Before anything that takes time or has to be ended: these signals can arrive as soon as the
    // process runs.
    let signals = {
        let _entered = runtime.enter();
        Signals::handle()?
    };
    let overrides = Overrides {
        listen: arguments.listen,
    };
    let mut loaded = crate::load(&arguments.config, overrides)?;
    match &passed {
        Some(passed) if loaded.sets("listen") => passed.check_address(loaded.config.listen)?,
        Some(passed) => loaded.config.listen = passed.address(),
        None => {}
    }
    let plan =
        Plan::new(&loaded.config).map_err(|errors| ConfigErrors(loaded.places.locate(errors)))?;
    log_warnings(&loaded.places.locate(plan.warnings.clone()));
    // Before a port is bound: clients do not wait for a server that cannot start.
    let persistence = runtime.block_on(Persistence::open(
        &plan,
        program.product,
        passed.is_none().then_some(plan.listen),
        signals.shutdown.clone(),
    ));
    let Some(persistence) = persistence.map_err(|error| with_place(error, &loaded.places))? else {
        return Ok(());
    };
    let has_passed_socket = passed.is_some();
    let listener = passed.map_or_else(
        || bind(plan.listen, "`listen` or --listen"),
        |passed| Ok(passed.into_listener()),
    )?;
    let admin = plan
        .admin
        .as_ref()
        .map(|admin| AdminListener::bind(&admin.listen))
        .transpose()?;
    let source = ConfigSource {
        file: arguments.config.clone(),
        overrides,
        load: crate::load,
        config: loaded.config,
        has_passed_socket,
    };
    let server = Server::new(plan)
        .program(program)
        .source(source)
        .listeners(Listeners {
            clients: listener,
            admin,
        })
        .access_log(AccessLog::start(format)?)
        .persistence(persistence);
    runtime
        .block_on(server.serve(signals))
        .map_err(|error| with_place(error, &loaded.places))
}

/// Adds file and line to the error of a setting.
fn with_place(error: ServeError, places: &Places) -> anyhow::Error {
    match error {
        ServeError::Setting(found) => ConfigErrors(places.locate(vec![found])).into(),
        error => error.into(),
    }
}
