//! One writer per thread.

use std::time::Duration;

use hanzo_store::{Holder, Store as _, StoreError};

use crate::help::{open, with_thread};

#[tokio::test]
async fn the_second_engine_is_told_who_has_the_thread_until_it_is_given_back() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let second = open(place.path()).await;
    let lease = store.claim(id, Holder::here("hanzo-dev serve")).await.unwrap();
    for engine in [&store, &second] {
        let refused = engine.claim(id, Holder::here("hanzo-dev run")).await.unwrap_err();
        let StoreError::Held { by, .. } = &refused else { panic!("{refused}") };
        assert_eq!((by.program.as_str(), by.pid), ("hanzo-dev serve", std::process::id()));
        assert!(refused.to_string().contains("hanzo-dev serve") && refused.to_string().contains("fork"));
    }
    drop(lease);
    let lease = second.claim(id, Holder::here("hanzo-dev run")).await.unwrap();
    assert_eq!(lease.thread(), id);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_holder_whose_process_is_gone_loses_the_thread_at_once() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
    let holder = Holder { pid: child.id(), started, ..Holder::here("hanzo-dev run") };
    // As another process would leave it behind: never given back.
    std::mem::forget(store.claim(id, holder.clone()).await.unwrap());
    assert!(matches!(store.claim(id, Holder::here("me")).await, Err(StoreError::Held { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    drop(store.claim(id, Holder::here("me")).await.unwrap());
    let reused = Holder { pid: std::process::id(), started: "1".into(), ..holder };
    let lease = loop {
        // The row is deleted in the background.
        match store.claim(id, reused.clone()).await {
            Err(StoreError::Held { .. }) => tokio::time::sleep(Duration::from_millis(1)).await,
            lease => break lease.unwrap(),
        }
    };
    std::mem::forget(lease);
    store.claim(id, Holder::here("me")).await.unwrap();
}

#[tokio::test]
async fn a_holder_on_another_machine_keeps_the_thread_while_it_renews() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let elsewhere = Holder { host: "elsewhere".into(), system: "x".into(), ..Holder::here("hanzo-dev") };
    let lease = store.claim(id, elsewhere).await.unwrap();
    assert!(matches!(store.claim(id, Holder::here("me")).await, Err(StoreError::Held { .. })));
    drop(lease);
}

#[tokio::test]
async fn only_a_thread_that_exists_can_be_claimed() {
    let place = tempfile::tempdir().unwrap();
    let (store, _) = with_thread(place.path()).await;
    let nowhere = hanzo_protocol::ids::ThreadId::new();
    let refused = store.claim(nowhere, Holder::here("me")).await.unwrap_err();
    assert_eq!(refused, StoreError::NoThread { thread: nowhere });
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_claim_at_once_one_succeeds() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let second = open(place.path()).await;
    for _ in 0..20 {
        let claims: Vec<_> = (0..8)
            .map(|n| {
                let store = if n % 2 == 0 { store.clone() } else { second.clone() };
                tokio::spawn(async move { store.claim(id, Holder::here(format!("engine {n}"))).await })
            })
            .collect();
        let mut won = Vec::new();
        for claim in claims {
            won.extend(claim.await.unwrap());
        }
        assert_eq!(won.len(), 1);
    }
}
