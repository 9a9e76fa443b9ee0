use std::{net::TcpListener, sync::Arc};

use arc_swap::ArcSwap;
use portcullis_config::plan::Plan;
use portcullis_discovery::Product;
use portcullis_metadata::SystemClock;
use portcullis_telemetry::{AccessLog, LogFormat, TraceExport, metrics::Metrics};
use portcullis_verifier::LimitHasher;
use tokio::sync::mpsc;

use super::{
    admin::{AdminListener, RunningAdmin},
    background::{BackgroundTasks, TaskInputs},
    broker::{self, persistence::BrokerPersistence, process::BrokerProcess},
    connection::{accept, client_listener::ClientListener, listener::bind, tls::Tls},
    error::ServeError,
    limits::open_files,
    observers::Observers,
    persistence::Persistence,
    reload::{
        ConfigSource, Reloader, key_material_files::KeyMaterialFiles, listeners::RunningListeners,
    },
    shutdown::{Shutdown, drain},
    signals::Signals,
    state::{Process, ServerState},
    worker_pool::WorkerPool,
};

/// The program that serves.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name and version, which requests, metrics, spans and the audit trail tell.
    pub product: Product,
    /// Returns the memory that the calling thread has freed to the operating system. It is called
    /// on each thread from time to time.
    pub return_freed_memory: fn(),
}

impl Default for Program {
    /// The default product, and an allocator that returns memory by itself.
    fn default() -> Self {
        Self {
            product: Product::default(),
            return_freed_memory: || {},
        }
    }
}

/// The bound listeners.
pub struct Listeners {
    /// That of clients.
    pub clients: TcpListener,
    /// That of administrators, if there is one.
    pub admin: Option<AdminListener>,
}

impl Listeners {
    /// Binds the addresses of the plan.
    ///
    /// # Errors
    /// When an address cannot be listened on. The message contains the fix.
    pub fn bind(plan: &Plan) -> Result<Self, ServeError> {
        let clients = bind(plan.listen, "listen")?;
        let admin = plan
            .admin
            .as_ref()
            .map(|admin| AdminListener::bind(&admin.listen))
            .transpose()?;
        Ok(Self { clients, admin })
    }
}

/// A server that is not yet started. Without the methods below, it binds the addresses of the plan,
/// opens its state directory and audit trail, does not reload, and keeps the access lines in a
/// bounded queue, which it writes to standard error when it ends.
#[must_use = "a server does nothing until it is served"]
pub struct Server {
    program: Program,
    plan: Plan,
    source: Option<ConfigSource>,
    listeners: Option<Listeners>,
    access: Arc<AccessLog>,
    persistence: Option<Persistence>,
}

impl Server {
    /// A server for a plan.
    pub fn new(plan: Plan) -> Self {
        let access = Arc::new(AccessLog::without_writer(LogFormat::default()));
        Self {
            program: Program::default(),
            plan,
            source: None,
            listeners: None,
            access,
            persistence: None,
        }
    }

    /// Sets the program, whose product requests, metrics, spans and the audit trail tell.
    pub fn program(self, program: Program) -> Self {
        Self { program, ..self }
    }

    /// Sets the source of the configuration. It is reloaded at SIGHUP and, if it says so, when it
    /// changes.
    pub fn source(self, source: ConfigSource) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    /// Sets listeners that are already bound.
    pub fn listeners(self, listeners: Listeners) -> Self {
        Self {
            listeners: Some(listeners),
            ..self
        }
    }

    /// Sets the log of requests.
    pub fn access_log(self, access: Arc<AccessLog>) -> Self {
        Self { access, ..self }
    }

    /// Sets the sessions and the audit trail, if they are already open.
    pub fn persistence(self, persistence: Persistence) -> Self {
        Self {
            persistence: Some(persistence),
            ..self
        }
    }

    /// Serves until the shutdown signal has arrived and the requests in progress have ended, or the
    /// shutdown timeout has passed.
    ///
    /// Raises the process's limit of open files to what the plan needs. If that is not possible,
    /// serves fewer connections.
    ///
    /// Runs on the current runtime, which must be a single-threaded one with I/O and time. It
    /// accepts connections, fetches keys and sweeps sessions; the workers have threads and runtimes
    /// of their own.
    ///
    /// # Errors
    /// Fails when the server cannot start, or the last access lines cannot be written.
    pub async fn serve(self, signals: Signals) -> Result<(), ServeError> {
        let Self {
            program,
            plan,
            source,
            listeners,
            access,
            persistence,
        } = self;
        let persistence = match persistence {
            Some(persistence) => persistence,
            None => {
                let listen = listeners.is_none().then_some(plan.listen);
                let shutdown = signals.shutdown.clone();
                match Persistence::open(&plan, program.product, listen, shutdown).await? {
                    Some(persistence) => persistence,
                    None => return Ok(()),
                }
            }
        };
        let listeners = listeners.map_or_else(|| Listeners::bind(&plan), Ok)?;
        run(
            program,
            plan,
            source,
            listeners,
            access,
            persistence,
            signals,
        )
        .await
        .map_err(ServeError::of)
    }
}

async fn run(
    program: Program,
    mut plan: Plan,
    source: Option<ConfigSource>,
    listeners: Listeners,
    access: Arc<AccessLog>,
    Persistence {
        sessions,
        audit,
        broker,
    }: Persistence,
    Signals { shutdown, hangups }: Signals,
) -> anyhow::Result<()> {
    // Process: the listener, the limit of open files.
    let address = listeners.clients.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listeners.clients)?;
    let shortage = open_files::fit(&mut plan);
    if plan.replicas.is_some() {
        // Replicas count requests together if they hash clients with the same key.
        LimitHasher::set_key(&plan.session.settings.keys.limit_key());
    }

    // State: issuers, sessions and the service stacks of all resources.
    let traces = plan
        .traces
        .clone()
        .map(|mut settings| {
            settings.fetch.user_agent = Some(program.product.to_string());
            TraceExport::start(settings, program.product.version)
        })
        .transpose()?;
    let clock = Arc::new(SystemClock::new());
    let observers = Observers {
        access: Arc::clone(&access),
        audit: audit.as_ref().map(|trail| trail.audit().clone()),
        metrics: plan
            .admin
            .as_ref()
            .map(|_| Metrics::new(program.product.version, plan.workers, &*clock)),
        traces: traces.as_ref().map(|export| export.traces().clone()),
    };
    let mut persistence = sessions.share(plan.replicas.as_ref(), Arc::clone(&clock) as _)?;
    let (process, upstream_ender) = Process::new(
        &plan,
        program.product,
        Arc::clone(&clock) as _,
        observers,
        &mut persistence,
    );
    let broker = match (&plan.broker, broker) {
        (Some(_), None) => Some(BrokerPersistence::open(&plan, None, clock).await?),
        (_, broker) => broker,
    };
    let process = process.with_broker(broker.map(BrokerProcess::new));
    let state = ServerState::new(&plan, &process, None)?;
    process.upstream_ends.set_upstreams(state.upstreams());
    state.receive_broker_ends();
    if let (Some(broker), Some(process)) = (state.broker(), &process.broker) {
        process.read_records(broker).await?;
    }
    // If the plan cannot run, only its error is reported.
    if let Some(shortage) = shortage {
        shortage.log();
    }
    persistence.report();
    if let Some(broker) = &plan.broker {
        broker::report(&broker.settings);
    }
    state.spawn_key_refresh();
    let tls = plan.tls.as_ref().map(Tls::new).transpose()?;
    let state = Arc::new(ArcSwap::from_pointee(state));

    // Background tasks: reloads, ended sessions, sweeps, administrators.
    let files = KeyMaterialFiles::new(&plan, tls.clone(), process.sessions.clone());
    let contents = std::mem::take(&mut plan.contents);
    let (admin, admin_servers) = listeners
        .admin
        .zip(plan.admin.as_ref())
        .map(|(bound, plan)| RunningAdmin::new(bound, plan, Arc::clone(&state)))
        .transpose()?
        .unzip();
    let (replace, replacements) = mpsc::channel(1);
    let metrics = process.observers.metrics.as_deref();
    let running = RunningListeners::new(&plan, replace, tls.clone(), admin, metrics);
    let (reopener, max_connections) = (
        audit.as_ref().map(|trail| trail.reopener()),
        plan.limits.max_connections,
    );
    let inputs = TaskInputs {
        upstream_ender,
        reloader: Reloader::new(
            Arc::clone(&state),
            source,
            reopener,
            running,
            files,
            contents,
            max_connections,
        ),
        hangups,
        admin: admin_servers,
        return_freed_memory: program.return_freed_memory,
        records_last_uses: persistence.journal().is_some() || process.replicas.is_some(),
    };
    let tasks = BackgroundTasks::start(&state, inputs);
    // Clients wait in the queue of the listener until the ends of other replicas are known.
    tasks.wait_for_replicas(shutdown.clone()).await;

    // Workers: they serve what the accept loop passes to them.
    let draining = drain::begin_after(shutdown, Arc::clone(&state));
    let WorkerPool { workers, end } =
        WorkerPool::start(&plan, &state, program.return_freed_memory)?;
    tracing::info!(listen.address = %address, workers = plan.workers, "listening");
    let listener = ClientListener::new(listener, tls);
    accept::run(listener, replacements, workers, max_connections, draining).await;

    Shutdown {
        state,
        workers: end,
        tasks,
        persistence,
        access,
        audit,
        traces,
    }
    .run()
    .await
}
