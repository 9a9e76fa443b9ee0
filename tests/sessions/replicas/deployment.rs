//! Replicas that use a `redis-server`.

use portcullis_scenarios::{
    Administration, Deployment, DeploymentBuilder, HttpResponse, INITIALIZE, Portcullis, Redis,
    Request, Scratch, wait_until_ready,
};

const KEY: &str = "the-common-key-0123456789abcdef0123456";

/// A deployment, and further programs with its configuration.
pub(super) struct Replicas {
    pub(super) deployment: Deployment,
    others: Vec<Portcullis>,
    /// The listeners for administrators.
    pub(super) administrations: Vec<Administration>,
    pub(super) token: String,
    _keys: Scratch,
}

impl Replicas {
    /// Starts replicas. `more` follows the table `[shared]`.
    pub(super) async fn start(redis: &Redis, count: usize, more: &str) -> Self {
        Self::with(redis, count, "", more, Deployment::builder()).await
    }

    /// Starts replicas with lines of the table `[session]`, and the issuer, resource and upstream
    /// of a builder.
    pub(super) async fn with(
        redis: &Redis,
        count: usize,
        session: &str,
        more: &str,
        builder: DeploymentBuilder,
    ) -> Self {
        let keys = Scratch::file("session-keys", KEY);
        let administration = Administration::default();
        let tables = format!(
            "[session]\nended_status = 404\nkeys = [{{ file = \"{}\" }}]\n{session}\n{}\n[shared]\nredis = \"redis://{}\"\n{more}",
            keys.as_str(),
            administration.table(),
            redis.address()
        );
        let deployment = builder.tables(tables).start().await;
        let token = deployment.good_token();
        let administrations = vec![administration];
        let mut replicas = Self {
            deployment,
            others: Vec::new(),
            administrations,
            token,
            _keys: keys,
        };
        while replicas.all().count() < count {
            replicas.add().await;
        }
        for replica in replicas.all() {
            wait_until_ready(replica).await;
        }
        replicas
    }

    /// Starts one more replica and returns its number.
    pub(super) async fn add(&mut self) -> usize {
        let administration = Administration::default();
        let tables = [self.administrations[0].table(), administration.table()];
        let configuration = self
            .deployment
            .configuration()
            .replace(&tables[0], &tables[1]);
        self.others.push(Portcullis::serve(&configuration).await);
        self.administrations.push(administration);
        self.others.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Portcullis> {
        [&self.deployment.portcullis]
            .into_iter()
            .chain(&self.others)
    }

    pub(super) fn replica(&self, number: usize) -> &Portcullis {
        self.all().nth(number).unwrap()
    }

    pub(super) async fn open(&self, number: usize) -> String {
        let initialize = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&self.token);
        let response = initialize.send(self.replica(number).address()).await;
        assert_eq!(response.status, 200, "{response:?}");
        response.header("mcp-session-id").unwrap().to_owned()
    }

    pub(super) async fn echo(&self, number: usize, session: &str) -> HttpResponse {
        let echo = Request::echo(Deployment::ENDPOINT, &self.token, session);
        echo.send(self.replica(number).address()).await
    }

    pub(super) async fn delete(&self, number: usize, session: &str) -> HttpResponse {
        let delete = Request::delete(Deployment::ENDPOINT, &self.token, session);
        delete.send(self.replica(number).address()).await
    }
}
