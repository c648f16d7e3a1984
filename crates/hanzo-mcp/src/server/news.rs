//! What clients are told without asking: that a list is another one than before. The composition root says so by a channel of
//! numbers; whoever is connected hears of it once, however often it happens before they can be told.

use hanzo_protocol::BoxFuture;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, RoleServer, SubscriptionContext, SubscriptionSink};
use tokio::sync::watch;

/// What is offered, each list by a number that is another when the list is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offered {
    /// The tools.
    pub tools: u64,
    /// The prompts.
    pub prompts: u64,
    /// The resources.
    pub resources: u64,
}

/// Where what is offered is known from; nothing ever changes without one.
pub(super) type News = Option<watch::Receiver<Offered>>;

/// A list of which clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Tools,
    Prompts,
    Resources,
}

impl Offered {
    /// The lists that are others than `before`.
    fn since(self, before: Self) -> impl Iterator<Item = Which> {
        let all = [
            (Which::Tools, self.tools != before.tools),
            (Which::Prompts, self.prompts != before.prompts),
            (Which::Resources, self.resources != before.resources),
        ];
        all.into_iter().filter_map(|(which, is_other)| is_other.then_some(which))
    }
}

/// Whom to tell.
trait Listener: Send + Sync {
    /// Says that a list has changed; whether anybody is still there.
    fn tell(&self, which: Which) -> BoxFuture<'_, bool>;
}

/// A client of a connection: since it greeted it hears of everything.
struct Connected(Peer<RoleServer>);

impl Listener for Connected {
    fn tell(&self, which: Which) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let told = match which {
                Which::Tools => self.0.notify_tool_list_changed().await,
                Which::Prompts => self.0.notify_prompt_list_changed().await,
                Which::Resources => self.0.notify_resource_list_changed().await,
            };
            told.is_ok()
        })
    }
}

/// A client of protocol 2026-07-28: it hears of what it asked to hear of, for as long as its request is open.
struct Subscribed(SubscriptionSink);

impl Listener for Subscribed {
    fn tell(&self, which: Which) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let wanted = self.0.accepted();
            let told = match which {
                Which::Tools if wanted.tools_list_changed == Some(true) => {
                    self.0.notify_tool_list_changed().await
                }
                Which::Prompts if wanted.prompts_list_changed == Some(true) => {
                    self.0.notify_prompt_list_changed().await
                }
                Which::Resources if wanted.resources_list_changed == Some(true) => {
                    self.0.notify_resource_list_changed().await
                }
                _ => return true,
            };
            told.is_ok()
        })
    }
}

/// The lists one can hear of here.
pub(super) fn heard_of() -> SubscriptionFilter {
    SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().resources_list_changed().build()
}

/// Tells a connected client until it is gone. What it was told while greeting it knows.
pub(super) async fn tell_connected(news: watch::Receiver<Offered>, peer: Peer<RoleServer>) {
    follow(Some(news), None, &Connected(peer)).await;
}

/// Tells a subscribed client until it does not want to hear any more. `lent` rings when it lends other tools itself.
pub(super) async fn tell_subscribed(news: News, lent: watch::Receiver<u64>, context: SubscriptionContext) {
    let listener = Subscribed(context.sink().clone());
    tokio::select! {
        () = follow(news, Some(lent), &listener) => {}
        () = context.cancelled() => {}
    }
}

async fn follow(mut news: News, mut lent: Option<watch::Receiver<u64>>, listener: &dyn Listener) {
    let mut known = news.as_mut().map(|news| *news.borrow_and_update()).unwrap_or_default();
    if let Some(lent) = &mut lent {
        lent.mark_unchanged();
    }
    loop {
        let changed: Vec<Which> = tokio::select! {
            now = next(&mut news) => {
                let before = std::mem::replace(&mut known, now);
                now.since(before).collect()
            }
            _ = next(&mut lent) => vec![Which::Tools],
        };
        for which in changed {
            if !listener.tell(which).await {
                return;
            }
        }
    }
}

/// The next value; waits for ever where there will be none.
async fn next<T: Copy>(channel: &mut Option<watch::Receiver<T>>) -> T {
    if let Some(open) = channel
        && open.changed().await.is_ok()
    {
        return *open.borrow_and_update();
    }
    *channel = None;
    std::future::pending().await
}
