//! One server: connected in the background, connected again when it ends, asked for its lists, called.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hanzo_backoff::Backoff;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams, ProtocolVersion, SubscriptionFilter,
};
use serde_json::Value;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::config::{ServerConfig, Switch};
use super::exchange::{Ask, Asking, Live};
use super::fault::McpError;
use super::handler::Handler;
use super::listing::{self, Listing};
use super::manager::Shared;
use super::text::{MOST_DESCRIPTION, MOST_NAME, clean, line};
use super::transport::{Connected, Way, connect, last_words};

/// How long a server whose lists are known is left alone at the start: what the user waits for comes first.
const HEAD_START: Duration = Duration::from_millis(250);
/// How long a server that is starting keeps others from starting.
const STARTING: Duration = Duration::from_secs(1);
/// The first pause after a failure, and the longest, in milliseconds.
const PAUSES: (u64, u64) = (500, 60_000);
/// After so many failures in a row a server is tried again only when somebody wants it.
const MOST_ATTEMPTS: u32 = 10;
/// A server that lived this long failed for another reason than the last one.
const LIVED: Duration = Duration::from_mins(1);
/// How long a call that lost its server waits to hear how that ended.
const LAST_WORDS: Duration = Duration::from_millis(800);
/// How long a server has to end by itself.
const FAREWELL: Duration = Duration::from_millis(500);

/// How a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing was tried yet.
    Configured,
    /// It is being started or greeted.
    Connecting,
    /// It answers.
    Connected,
    /// It does not, and the error says why.
    Failed,
    /// It is switched off.
    Off,
}

/// What is known about a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// How it is reached: `stdio`, `http`, `sse`, `websocket`.
    pub transport: &'static str,
    /// How it is.
    pub phase: Phase,
    /// Why it last failed.
    pub error: Option<String>,
    /// Whether that is because it wants to know who is there.
    pub wants_login: bool,
    /// How many tools, prompts and resources it has, once that is known, be it from the last run.
    pub counts: Option<(usize, usize, usize)>,
    /// The protocol version that was agreed on.
    pub protocol: Option<String>,
    /// How long its last answer to a list took.
    pub latency: Option<Duration>,
    /// What of its lists was put right or left out.
    pub notes: Vec<String>,
}

/// The connection, as callers see it.
#[derive(Clone)]
enum Link {
    /// Somebody is at it.
    Waiting,
    Up(Live),
    /// The number tells one failure from the next.
    Down(McpError, u64),
}

struct State {
    phase: Phase,
    error: Option<String>,
    latency: Option<Duration>,
    listing: Option<Arc<Listing>>,
}

pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    /// Its place among the servers.
    index: usize,
    fingerprint: String,
    shared: Arc<Shared>,
    state: Mutex<State>,
    link: watch::Sender<Link>,
    permits: Semaphore,
    /// Somebody wants it now.
    wanted: Notify,
    switch: watch::Sender<Switch>,
    /// Ends the connection there is now, and nothing else.
    round: Mutex<CancellationToken>,
}

impl Server {
    pub(crate) fn new(config: ServerConfig, index: usize, shared: &Arc<Shared>) -> Self {
        let fingerprint = config.fingerprint();
        let listing = shared.cache.load(&fingerprint).map(Arc::new);
        Self {
            index,
            fingerprint,
            permits: Semaphore::new(config.concurrency.max(1)),
            shared: Arc::clone(shared),
            state: Mutex::new(State { phase: Phase::Configured, error: None, latency: None, listing }),
            link: watch::Sender::new(Link::Waiting),
            wanted: Notify::new(),
            switch: watch::Sender::new(config.switch),
            round: Mutex::default(),
            config,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it has, once that is known and while it is on.
    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.is_on().then(|| self.state().listing.clone())?
    }

    pub(crate) fn is_on(&self) -> bool {
        *self.switch.borrow() == Switch::On
    }

    /// Switches it on or off.
    pub(crate) fn switch(&self, to: Switch) {
        if *self.switch.borrow() == to {
            return;
        }
        match to {
            // The switch itself ends the rest. To end the round as well could end the connection that has just begun, and start
            // the server twice.
            Switch::On => {
                self.link.send_replace(Link::Waiting);
                self.switch.send_replace(to);
            }
            Switch::Off => {
                self.switch.send_replace(to);
                self.anew();
            }
        }
    }

    /// Ends the connection there is and makes another, unless it is switched off.
    pub(crate) fn anew(&self) {
        // Whoever waits from now on waits for the next connection.
        self.link.send_replace(Link::Waiting);
        self.round().cancel();
        self.wanted.notify_waiters();
    }

    fn round(&self) -> MutexGuard<'_, CancellationToken> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let state = self.state();
        let listing = state.listing.as_ref();
        ServerStatus {
            name: self.config.name.clone(),
            transport: self.config.transport.kind(),
            phase: state.phase,
            error: state.error.clone(),
            wants_login: state.error.is_some()
                && matches!(&*self.link.borrow(), Link::Down(McpError::Login { .. }, _)),
            counts: listing.map(|list| (list.tools.len(), list.prompts.len(), list.resources.len())),
            protocol: listing.map(|list| list.protocol.clone()).filter(|text| !text.is_empty()),
            latency: state.latency,
            notes: listing.map(|list| list.notes.clone()).unwrap_or_default(),
        }
    }

    /// Keeps the server connected until `stop`.
    pub(crate) async fn supervise(self: Arc<Self>, stop: CancellationToken, starting: Arc<Semaphore>) {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        let mut failures = 0;
        if self.listing().is_some() {
            self.pause(Some(HEAD_START), std::pin::pin!(self.wanted.notified()), &stop).await;
        }
        while !stop.is_cancelled() {
            let round = stop.child_token();
            *self.round() = round.clone();
            // Asked after the round is known: whoever switches it off from here on ends the round.
            if !self.is_on() {
                failures += 1;
                self.rest(failures, &stop).await;
                backoff.reset();
                continue;
            }
            self.state().phase = Phase::Connecting;
            self.link.send_modify(|link| {
                if !matches!(link, Link::Down(..)) {
                    *link = Link::Waiting;
                }
            });
            let begun = Instant::now();
            let Some(error) = self.once(&starting, &round).await else {
                backoff.reset();
                continue;
            };
            if begun.elapsed() > LIVED {
                backoff.reset();
            }
            failures += 1;
            let is_final = error.is_final();
            // Whoever wants it because they heard of the failure must be heard, and nobody who wanted it before that.
            let mut wanted = std::pin::pin!(self.wanted.notified());
            wanted.as_mut().enable();
            self.fail(error, failures);
            let pause = (!is_final && backoff.attempt() < MOST_ATTEMPTS).then(|| backoff.next_delay());
            self.pause(pause, wanted, &stop).await;
        }
        let gone =
            McpError::Gone { server: self.config.name.clone(), reason: "it is not used any more".to_owned() };
        self.fail(gone, failures + 1);
    }

    /// Waits until it is switched on again, offering nothing.
    async fn rest(&self, number: u64, stop: &CancellationToken) {
        {
            let mut state = self.state();
            state.phase = Phase::Off;
            state.error = None;
            state.latency = None;
        }
        let off = McpError::Unknown(format!("the MCP server `{}` is switched off", self.config.name));
        self.link.send_replace(Link::Down(off, number));
        self.shared.publish(self.index, &Listing::default());
        let mut switch = self.switch.subscribe();
        tokio::select! {
            _ = switch.wait_for(|switch| *switch == Switch::On) => {}
            () = stop.cancelled() => return,
        }
        self.link.send_replace(Link::Waiting);
        if let Some(listing) = self.listing() {
            self.shared.publish(self.index, &listing);
        }
    }

    /// Waits, but not when the server is wanted.
    async fn pause(&self, pause: Option<Duration>, wanted: Pin<&mut Notified<'_>>, stop: &CancellationToken) {
        let over = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => {}
            () = wanted => {}
            () = stop.cancelled() => {}
        }
    }

    fn fail(&self, error: McpError, number: u64) {
        {
            let mut state = self.state();
            state.phase = Phase::Failed;
            state.error = Some(error.to_string());
        }
        self.link.send_replace(Link::Down(error, number));
        self.shared.bell.send_modify(|rings| *rings += 1);
    }

    /// One connection, from its beginning to its end. `None` when it was to end.
    async fn once(&self, starting: &Arc<Semaphore>, stop: &CancellationToken) -> Option<McpError> {
        let handler = Arc::new(Handler::new(
            &self.config.name,
            self.shared.roots.clone(),
            self.shared.elicitor.clone(),
            self.shared.sampler.clone(),
            self.shared.log.clone(),
        ));
        let connected = tokio::select! {
            connected = self.start(starting, &handler) => connected,
            () = stop.cancelled() => return None,
        };
        let connected = match connected {
            Ok(connected) => connected,
            Err(error) => return Some(error),
        };
        let Connected { service, mut process, tail } = connected;
        let Some(info) = service.peer().peer_info() else {
            return Some(McpError::Protocol {
                server: self.config.name.clone(),
                reason: "it does not say what it is".to_owned(),
            });
        };
        let live =
            Live { server: self.config.name.as_str().into(), peer: service.peer().clone(), handler, info };
        let end = service.cancellation_token();
        let mut ended = std::pin::pin!(service.waiting());
        let mut is_over = false;
        let mut reason = tokio::select! {
            biased;
            error = self.serve(&live) => Some(error),
            _ = &mut ended => {
                is_over = true;
                let reason = "the connection was closed".to_owned();
                Some(McpError::Gone { server: self.config.name.clone(), reason })
            }
            () = stop.cancelled() => None,
        };
        if !is_over {
            end.cancel();
            let _ = tokio::time::timeout(FAREWELL, ended).await;
        }
        if let (Some(McpError::Gone { reason, .. }), Some(process), Some(tail)) =
            (&mut reason, &mut process, &tail)
            && let Some(words) = last_words(process.as_mut(), tail).await
        {
            *reason = words;
        }
        reason
    }

    async fn start(&self, starting: &Arc<Semaphore>, handler: &Arc<Handler>) -> Result<Connected, McpError> {
        let ended = || McpError::Gone {
            server: self.config.name.clone(),
            reason: "it is not used any more".to_owned(),
        };
        let spawner = self.shared.spawner().ok_or_else(ended)?;
        // A machine that starts fifty programs at once does nothing else; one that hangs must not hold up the others.
        let permit = Arc::clone(starting).acquire_owned().await.ok();
        let release = tokio::spawn(async move {
            tokio::time::sleep(STARTING).await;
            drop(permit);
        });
        let way = Way { config: &self.config, spawner: &spawner, handler, log: self.shared.log.as_ref() };
        let limit = self.config.timeout;
        let connected = tokio::time::timeout(limit, connect(&way)).await;
        release.abort();
        connected.unwrap_or_else(|_| {
            Err(McpError::Timeout {
                server: self.config.name.clone(),
                what: "our greeting".to_owned(),
                limit,
            })
        })
    }

    /// Offers the server, and follows its changes until it is of no use any more.
    async fn serve(&self, live: &Live) -> McpError {
        if let Err(error) = self.refresh(live).await {
            return error;
        }
        {
            let mut state = self.state();
            state.phase = Phase::Connected;
            state.error = None;
        }
        self.link.send_replace(Link::Up(live.clone()));
        self.shared.bell.send_modify(|rings| *rings += 1);
        let listening = listen(live);
        let mut listening = std::pin::pin!(listening);
        let mut listens = true;
        loop {
            tokio::select! {
                () = live.handler.changed.notified() => {
                    // What is kept is known to be wrong from this moment on.
                    self.shared.cache.forget(&self.fingerprint);
                    if let Err(error) = self.refresh(live).await {
                        return error;
                    }
                }
                () = live.handler.broken.notified() => {
                    return McpError::Gone {
                        server: self.config.name.clone(),
                        reason: "it could not be reached any more".to_owned(),
                    };
                }
                () = &mut listening, if listens => listens = false,
            }
        }
    }

    /// Asks for the lists and publishes them.
    async fn refresh(&self, live: &Live) -> Result<(), McpError> {
        let begun = Instant::now();
        let listing = Arc::new(lists(live, self.config.timeout).await?);
        {
            let mut state = self.state();
            state.latency = Some(begun.elapsed());
            state.listing = Some(Arc::clone(&listing));
        }
        // Should it not be kept, the next run learns it anew.
        let _ = self.shared.cache.store(&self.fingerprint, &listing);
        self.shared.publish(self.index, &listing);
        Ok(())
    }

    /// The connection, waited for as long as a request may take.
    async fn live(&self) -> Result<Live, McpError> {
        let mut link = self.link.subscribe();
        let seen = match &*link.borrow_and_update() {
            Link::Up(live) => return Ok(live.clone()),
            Link::Down(error, _) if error.is_final() => return Err(error.clone()),
            Link::Down(_, number) => Some(*number),
            Link::Waiting => None,
        };
        self.wanted.notify_waiters();
        let limit = self.config.timeout;
        let settled = link.wait_for(|link| match link {
            Link::Up(_) => true,
            Link::Down(_, number) => seen != Some(*number),
            Link::Waiting => false,
        });
        let silent =
            || McpError::Timeout { server: self.config.name.clone(), what: "our greeting".to_owned(), limit };
        let settled = tokio::time::timeout(limit, settled).await.map_err(|_| silent())?;
        match settled.map(|link| link.clone()) {
            Ok(Link::Up(live)) => Ok(live),
            Ok(Link::Down(error, _)) => Err(error),
            _ => Err(silent()),
        }
    }

    /// Asks the server something.
    pub(crate) async fn ask(&self, ask: Ask, asking: &Asking) -> Result<Value, McpError> {
        let limit = self.config.timeout;
        let busy = || McpError::Timeout {
            server: self.config.name.clone(),
            what: "earlier calls".to_owned(),
            limit,
        };
        let permit = tokio::time::timeout(limit, self.permits.acquire()).await;
        let _permit = permit.map_err(|_| busy())?.map_err(|_| busy())?;
        let live = self.live().await?;
        let answer = live.ask(ask, asking, limit).await;
        match answer {
            Err(McpError::Gone { server, reason }) => {
                live.handler.broken.notify_one();
                Err(McpError::Gone { server, reason: self.reason_of_end().await.unwrap_or(reason) })
            }
            other => other,
        }
    }

    /// What the end of the server was, told a moment after it.
    async fn reason_of_end(&self) -> Option<String> {
        let mut link = self.link.subscribe();
        let down = link.wait_for(|link| matches!(link, Link::Down(..)));
        let down = tokio::time::timeout(LAST_WORDS, down).await.ok()?.ok()?;
        match &*down {
            Link::Down(McpError::Gone { reason, .. }, _) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Waits until it is known whether the server answers.
    pub(crate) async fn settled(&self) {
        let mut link = self.link.subscribe();
        self.wanted.notify_waiters();
        let _ = link.wait_for(|link| !matches!(link, Link::Waiting)).await;
    }
}

/// Hears from a server of the newest protocol that its lists changed; older ones say it by themselves.
async fn listen(live: &Live) {
    let capabilities = &live.info.capabilities;
    let says = |changes: Option<bool>| changes == Some(true);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed =
        capabilities.tools.as_ref().and_then(|tools| tools.list_changed).filter(|says| *says);
    filter.prompts_list_changed =
        capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed).filter(|says| *says);
    filter.resources_list_changed =
        capabilities.resources.as_ref().and_then(|resources| resources.list_changed).filter(|says| *says);
    let any = says(filter.tools_list_changed)
        || says(filter.prompts_list_changed)
        || says(filter.resources_list_changed);
    if live.info.protocol_version < ProtocolVersion::V_2026_07_28 || !any {
        return;
    }
    let Ok(mut subscription) = live.peer.listen(filter).await else { return };
    while let Ok(Some(_)) = subscription.next().await {
        live.handler.changed.notify_one();
    }
}

/// Everything a server has.
async fn lists(live: &Live, limit: Duration) -> Result<Listing, McpError> {
    let capabilities = &live.info.capabilities;
    let mut notes = Vec::new();
    let asking = Asking::default();
    macro_rules! all {
        ($request:ident, $key:literal, $what:literal) => {
            listing::pages($key, &mut notes, |cursor| {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let request = ClientRequest::$request($request::with_param(params));
                let asking = &asking;
                async move {
                    let result = live.request(request, $what, asking, limit).await?;
                    live.value(&result)
                }
            })
            .await
        };
    }
    let tools = match capabilities.tools {
        Some(_) => all!(ListToolsRequest, "tools", "the request for its tools")?,
        None => Vec::new(),
    };
    let tools = listing::tools(tools, &mut notes);
    // A server whose other lists fail still has tools.
    let optional = |result: Result<Vec<Value>, McpError>, notes: &mut Vec<String>| match result {
        Ok(entries) => Ok(entries),
        Err(error @ (McpError::Refused { .. } | McpError::Protocol { .. })) => {
            notes.push(line(&error.to_string(), 300));
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    };
    let (mut prompts, mut resources, mut templates) = (Vec::new(), Vec::new(), Vec::new());
    if capabilities.prompts.is_some() {
        let listed = all!(ListPromptsRequest, "prompts", "the request for its prompts");
        prompts = listing::prompts(optional(listed, &mut notes)?, &mut notes);
    }
    if capabilities.resources.is_some() {
        let listed = all!(ListResourcesRequest, "resources", "the request for its resources");
        resources = listing::resources(optional(listed, &mut notes)?, &mut notes, "uri");
        let listed = all!(ListResourceTemplatesRequest, "resourceTemplates", "the request for its resources");
        templates = listing::resources(optional(listed, &mut notes)?, &mut notes, "uriTemplate");
    }
    let said = live.info.server_info.as_ref();
    Ok(Listing {
        protocol: live.info.protocol_version.as_str().to_owned(),
        title: said.map(|info| line(&format!("{} {}", info.name, info.version), MOST_NAME)),
        instructions: live.info.instructions.as_deref().map(|text| clean(text, MOST_DESCRIPTION)),
        tools,
        prompts,
        resources,
        templates,
        notes,
    })
}
