//! A receiver that is down is not called for each event, and gets all of them when it recovers.

use std::sync::atomic::AtomicBool;

use super::*;

on_both![probes_a_receiver_that_is_down_then_catches_up_in_order, an_event_that_always_fails_blocks_no_others,];

fn probes_a_receiver_that_is_down_then_catches_up_in_order(db: Db) {
    let (well, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let (is_well, takes) = (well.clone(), taken.clone());
    let receiver = receiver(move |received| {
        if !is_well.load(Ordering::SeqCst) {
            return Reply::new(500);
        }
        takes.lock().unwrap().push(body(received)["data"]["name"].as_str().unwrap_or("test").to_string());
        Reply::new(200)
    });
    let server = sending(db);
    let client = server.client();
    let (path, _) = endpoint(&client, &receiver.url("/"), &["product.created"]);
    let names: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    for name in &names {
        product(&client, name);
    }
    let down = until("the breaker", || Some(client.get(&path).data()).filter(|data| data["next_probe_at"].is_string()));
    assert!(down["failing_since"].is_string() && down["active"] == true, "{down}");
    let calls = receiver.received().len();
    std::thread::sleep(Duration::from_secs(2));
    // Two may be in progress when it opens; a first probe may follow after ten seconds.
    assert!(
        (5..=8).contains(&calls) && receiver.received().len() <= calls + 2,
        "{calls}, then {}",
        receiver.received().len()
    );
    assert_eq!(server.metric("kantoor_webhook_endpoints_down"), 1);

    // A probe is one call, and the next one is later.
    let calls = receiver.received().len();
    let sql = "UPDATE webhook_cursors SET next_probe_at = 1 WHERE next_probe_at > 0";
    server.app.store.write_now(0, move |tx| tx.execute(sql, &[]).map(drop)).unwrap();
    received(&receiver, calls + 1);
    let moment = |data: &Value| data["next_probe_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    until("the next probe", || (moment(&client.get(&path).data()) > moment(&down)).then_some(()));
    assert_eq!(receiver.received().len(), calls + 1);
    let waiting = deliveries(&client, &path, "status=queued&per_page=100");
    assert!(
        waiting.len() >= 30 && waiting.iter().all(|one| one["attempts"] == 0),
        "what is kept back is not tried: {waiting:?}"
    );

    hurry(&server);
    well.store(true, Ordering::SeqCst);
    // A test event sends the next probe immediately.
    client.act(&format!("{path}/test")).expect(200);
    until("all of them", || (taken.lock().unwrap().len() > names.len()).then_some(()));
    let all = taken.lock().unwrap().clone();
    assert_eq!(all.iter().filter(|name| *name != "test").collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    let well_again = until("the end", || Some(client.get(&path).data()).filter(|data| data["failing_since"].is_null()));
    assert!(well_again["next_probe_at"].is_null(), "{well_again}");
    until("their ends", || (deliveries(&client, &path, "status=delivered&per_page=100").len() == 41).then_some(()));
    assert_eq!(server.metric("kantoor_webhook_endpoints_down"), 0);
    product(&client, "after");
    until("the next one", || taken.lock().unwrap().contains(&"after".to_string()).then_some(()));
    assert_eq!(taken.lock().unwrap().len(), 42, "each once");
}

/// The failures of one event do not affect the others.
fn an_event_that_always_fails_blocks_no_others(db: Db) {
    let receiver = receiver(|received| Reply::new(if body(received)["data"]["name"] == "poison" { 500 } else { 200 }));
    let server = sending(db);
    let client = server.client();
    let (path, _) = endpoint(&client, &receiver.url("/"), &["product.created"]);
    product(&client, "poison");
    for attempt in 1..8 {
        settled(&client, &path, "retrying", attempt);
        hurry(&server);
    }
    settled(&client, &path, "retrying", 8);
    assert!(client.get(&path).data()["next_probe_at"].is_null());
    product(&client, "good");
    settled(&client, &path, "delivered", 1);
}
