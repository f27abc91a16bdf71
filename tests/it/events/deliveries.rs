//! Deliveries that fail, are slow, or are resent.

use super::*;

on_both![
    retries_deliveries_with_backoff,
    a_410_disables_the_endpoint,
    disables_an_endpoint_that_fails_for_days,
    a_slow_receiver_delays_no_others,
    an_event_can_be_resent,
];

fn retries_deliveries_with_backoff(db: Db) {
    let left = AtomicI32::new(3);
    let receiver = receiver(move |_| match left.fetch_sub(1, Ordering::SeqCst) {
        3 => Reply::json(500, format!("{}\u{0}", "x".repeat(5000))),
        2 => Reply::new(302).header("location", "/elsewhere"),
        1 => Reply::new(200).then(web::scripted::Then::CutOff),
        _ => Reply::new(200),
    });
    let server = sending(db);
    let client = server.client();
    let (path, secret) = endpoint(&client, &receiver.url("/in"), &["product.*"]);
    product(&client, "a");
    let mut pauses = Vec::new();
    for (attempt, status, reason) in [
        (1, 500, "The receiver responded with 500."),
        (2, 302, "The receiver responded with 302; redirects are not followed."),
        (3, 0, "was lost"),
    ] {
        let tried = settled(&client, &path, "retrying", attempt);
        assert_eq!(tried["response_status"], status);
        assert!(tried["reason"].as_str().unwrap().contains(reason), "{tried}");
        if attempt == 1 {
            assert_eq!(tried["response_body"], "x".repeat(1024));
        }
        let next: jiff::Timestamp = tried["next_attempt_at"].as_str().unwrap().parse().unwrap();
        let now: jiff::Timestamp = server.now().to_string().parse().unwrap();
        pauses.push(next.as_second() - now.as_second());
        hurry(&server);
    }
    assert!(pauses[0] <= 7 && (50..=73).contains(&pauses[1]) && (290..=361).contains(&pauses[2]), "{pauses:?}");
    settled(&client, &path, "delivered", 4);
    let all = receiver.received();
    assert_eq!(all.len(), 4, "a redirect is not followed");
    let first = &all[0];
    assert!(all.iter().all(|one| one.path == "/in"
        && one.body == first.body
        && one.header("webhook-id") == first.header("webhook-id")
        && is_genuine(&secret, one)));
}

fn a_410_disables_the_endpoint(db: Db) {
    let receiver = receiver(|received| Reply::new(if received.path == "/gone" { 410 } else { 204 }));
    let server = sending(db);
    let client = server.client();
    let (watcher, _) = endpoint(&client, &receiver.url("/watch"), &["webhook_endpoint.disabled"]);
    let (path, _) = endpoint(&client, &receiver.url("/gone"), &["product.*"]);
    for name in ["a", "b", "c", "d", "e"] {
        product(&client, name);
    }
    let off = until("off", || Some(client.get(&path).data()).filter(|data| data["active"] == false));
    assert_eq!(
        (&off["disabled_reason"], &off["disabled_at"]),
        (&json!("The receiver no longer exists. The receiver responded with 410."), &json!("2026-05-04T10:00:00.000Z"))
    );
    let notice = until("the notice", || receiver.received().into_iter().find(|one| one.path == "/watch"));
    assert_eq!(
        (&body(&notice)["type"], &body(&notice)["data"]["active"]),
        (&json!("webhook_endpoint.disabled"), &json!(false))
    );
    until("the end of all", || {
        deliveries(&client, &path, "").iter().all(|one| one["status"] == "failed").then_some(())
    });
    product(&client, "f");
    settled(&client, &watcher, "delivered", 1);
    assert!(receiver.received().iter().filter(|one| one.path == "/gone").count() <= 3, "at most those in flight");
    let failed = deliveries(&client, &path, "")[0]["id"].as_str().unwrap().to_string();
    assert_eq!(client.act(&format!("{path}/deliveries/{failed}/resend")).expect(409).code(), "invalid_transition");
    let on = client.patch(&path, json!({"active": true, "url": receiver.url("/back")})).expect(200).data();
    assert_eq!((&on["disabled_reason"], &on["disabled_at"]), (&json!(""), &json!(null)));
    product(&client, "g");
    settled(&client, &path, "delivered", 1);
}

fn disables_an_endpoint_that_fails_for_days(db: Db) {
    let receiver = receiver(|received| {
        Reply::new(if body(received)["data"]["name"] == "poison" || received.path == "/dead" { 503 } else { 200 })
    });
    let server = sending(db);
    let client = server.client();
    let (dead, _) = endpoint(&client, &receiver.url("/dead"), &["product.*"]);
    let (alive, _) = endpoint(&client, &receiver.url("/alive"), &["product.*"]);
    let before = server.last_seq(&client);
    product(&client, "poison");
    for attempt in 1..10 {
        settled(&client, &dead, "retrying", attempt);
        settled(&client, &alive, "retrying", attempt);
        if attempt == 5 {
            client.act(&format!("{alive}/test")).expect(200);
            until("the test", || deliveries(&client, &alive, "status=delivered&event=webhook.test").pop());
            let sql = "DELETE FROM webhook_deliveries WHERE event = 'webhook.test'";
            server.app.store.write_now(0, move |tx| tx.execute(sql, &[]).map(drop)).unwrap();
        }
        hurry(&server);
    }
    settled(&client, &dead, "failed", 10);
    settled(&client, &alive, "failed", 10);
    let off = client.get(&dead).data();
    assert_eq!(
        (&off["active"], &off["disabled_reason"]),
        (
            &json!(false),
            &json!(
                "A delivery failed ten times over several days, and no other succeeded in that time. The receiver responded with 503."
            )
        )
    );
    assert!(server.events(&client, before).contains(&"webhook_endpoint.disabled".to_string()));
    assert_eq!(client.get(&alive).data()["active"], true, "others succeeded in the meantime");

    let sql = "UPDATE webhook_cursors SET failing_since = failing_since - 6 * 24 * 3600 * 1000";
    server.app.store.write_now(0, move |tx| tx.execute(sql, &[]).map(drop)).unwrap();
    product(&client, "poison");
    let off = until("off", || Some(client.get(&alive).data()).filter(|data| data["active"] == false));
    assert_eq!(off["disabled_reason"], "No delivery has succeeded for five days. The receiver responded with 503.");
}

fn a_slow_receiver_delays_no_others(db: Db) {
    let (busy, most) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicI32::new(0)));
    let (now, peak) = (busy.clone(), most.clone());
    let slow = receiver(move |_| {
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1500));
        now.fetch_sub(1, Ordering::SeqCst);
        Reply::new(200)
    });
    let dead = receiver(|_| Reply::new(200).after(Duration::from_secs(30)));
    let quick = receiver(|_| Reply::new(200));
    let server = sending_with(db, |config| config.webhook_timeout_seconds = 1);
    let client = server.client();
    let (dead_path, _) = endpoint(&client, &dead.url("/"), &["product.*"]);
    let (slow_path, _) = endpoint(&client, &slow.url("/"), &["product.*"]);
    endpoint(&client, &quick.url("/"), &["product.*"]);
    let started = Instant::now();
    for name in 0..20 {
        product(&client, &name.to_string());
    }
    received(&quick, 20);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    until("a time-out", || deliveries(&client, &dead_path, "status=retrying").pop());
    let tried = deliveries(&client, &dead_path, "status=retrying").pop().unwrap();
    assert_eq!(tried["reason"], "The receiver did not respond within 1 seconds.");
    until("another", || (slow.received().len() >= 3).then_some(()));
    // The receiver continues after we disconnect, so it may see two more than are in flight.
    assert!(most.load(Ordering::SeqCst) <= 4, "{most:?}");
    assert!(deliveries(&client, &slow_path, "status=sending").len() <= 2);
}

fn an_event_can_be_resent(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = sending(db);
    let client = server.client();
    let (path, secret) = endpoint(&client, &receiver.url("/"), &["product.created"]);
    product(&client, "a");
    let first = settled(&client, &path, "delivered", 1);
    let again = client.act(&format!("{path}/deliveries/{}/resend", first["id"].as_str().unwrap())).expect(201);
    assert_eq!(
        (&again.data()["resend_of"], &again.data()["seq"], &again.data()["status"]),
        (&first["id"], &first["seq"], &json!("queued"))
    );
    let both = received(&receiver, 2);
    assert_eq!(both[0].body, both[1].body);
    assert_ne!(both[0].header("webhook-id"), both[1].header("webhook-id"));
    assert!(is_genuine(&secret, &both[1]));

    let test = client.act(&format!("{path}/test")).expect(200).data();
    assert_eq!((&test["event"], &test["status"]), (&json!("webhook.test"), &json!("queued")));
    let third = received(&receiver, 3).pop().unwrap();
    assert!(is_genuine(&secret, &third));
    assert_eq!(third.header("webhook-id"), test["delivery_id"].as_str());
    assert_eq!(
        body(&third),
        json!({"type": "webhook.test", "timestamp": "2026-05-04T10:00:00.000Z", "data": {"endpoint_id": path.rsplit('/').next()}, "seq": 0})
    );
    let id = test["delivery_id"].as_str().unwrap();
    client.act(&format!("{path}/deliveries/{id}/resend")).expect(201);
    assert_eq!(received(&receiver, 4).pop().unwrap().body, third.body);
}
