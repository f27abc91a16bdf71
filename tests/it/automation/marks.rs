//! Runs that are marked before they are advanced, as after a process died: a run that kills its process is found.

use engine::context::Actor;
use kantoor::automation::runner::Runner;
use store::Tx;

use super::calls::{announce, lose_lease};
use super::*;

on_both![a_mark_of_a_live_node_is_no_death, fails_a_run_that_always_kills_the_process];

/// Marks the next run, as a node does for a while after a process died.
fn mark(server: &Server, caller: &Actor, node: &Arc<Runner>) -> Option<String> {
    let (own, node) = (caller.clone(), node.clone());
    let marking = move |tx: &mut Tx| {
        let ctx = own.writing(tx)?;
        runner::mark(tx, &ctx, &node)
    };
    server.app.store.write_now(caller.account.number, marking).unwrap()
}

/// Advances the marked run.
fn go(server: &Server, caller: &Actor, node: &Arc<Runner>, marked: Option<String>) -> runner::Turn {
    let (own, node) = (caller.clone(), node.clone());
    let going = move |tx: &mut Tx| {
        let ctx = own.writing(tx)?;
        runner::turn_of(tx, &ctx, &own.account, &node, 10, marked.as_deref())
    };
    server.app.store.write_now(caller.account.number, going).unwrap()
}

/// After a node died with a call, the others advance one run at a time, each after they have marked it. The mark of one is no
/// death to another, so the call is made again at once.
fn a_mark_of_a_live_node_is_no_death(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    flow(&client, "a.b", json!([{"type": "http", "url": away().url("/")}]));
    let id = fire(&client, "a.b", json!({})).pop().unwrap();
    assert_eq!(announce(&server, &client).len(), 1);
    lose_lease(&server, &client);
    server.execute("INSERT INTO nodes (id, beat) VALUES ('other', 1)");
    let caller = server.app.acting(account(&server, &client), "automation");
    let (own, other) = (runner::runner_of(&server.app), Arc::new(Runner::on("other")));
    let marked = mark(&server, &caller, &other);
    assert_eq!(marked.as_ref(), Some(&id));
    assert_eq!(mark(&server, &caller, own), None, "it is left to the node that marked it");
    assert!(announce(&server, &client).is_empty(), "also by a node that marks none");
    let turn = go(&server, &caller, own, Some(String::new()));
    assert_eq!((turn.ran, turn.more), (0, false), "and it is not asked for again and again");
    assert_eq!(go(&server, &caller, &other, marked).calls.len(), 1, "{}", run(&client, &id));
    // The other node dies as well, when it has marked the run again.
    lose_lease(&server, &client);
    assert!(mark(&server, &caller, &other).is_some());
    server.execute("DELETE FROM nodes WHERE id = 'other'");
    assert_eq!(announce(&server, &client).len(), 1, "nobody waits for a dead node");
}

/// A run whose steps only touch the database is given up like a call, when it always kills its process.
fn fails_a_run_that_always_kills_the_process(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    flow(&client, "a.b", task());
    let ids: Vec<String> = (0..2).flat_map(|n| fire(&client, "a.b", json!({"name": n}))).collect();
    let caller = server.app.acting(account(&server, &client), "automation");
    let engine = runner::runner_of(&server.app);
    let mark = || mark(&server, &caller, engine);
    let go = |marked: Option<String>| go(&server, &caller, engine, marked);
    // Both are due at the same time, so their ids decide which one is the first.
    let first = mark().unwrap();
    let second = ids.iter().find(|id| **id != first).unwrap();
    // The process dies four times with the first of them.
    for _ in 0..3 {
        assert_eq!(mark().as_ref(), Some(&first));
    }
    let turn = go(mark());
    assert_eq!((turn.ran, turn.more), (1, true));
    assert_eq!(
        run(&client, &first)["error"],
        "Step 1 (create_task): It was started 5 times in a row and never completed."
    );
    // A run that takes long on a busy machine continues in another turn.
    let mut turn = go(mark());
    while turn.ended.is_empty() {
        assert_eq!((turn.ran, turn.more), (1, false));
        turn = go(mark());
    }
    assert_eq!((turn.ran, turn.more, turn.ended), (1, false, vec!["success"]));
    assert_eq!(status(&client, second), "success");
    assert_eq!((mark(), total(&client, "/v1/tasks")), (None, 1));
}
