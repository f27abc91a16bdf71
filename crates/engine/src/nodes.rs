//! The nodes on one PostgreSQL database. Each writes a heartbeat; when a node dies, the others detect it and release
//! its work. This does not depend on clocks: the others count how often they see no new heartbeat, so neither differing
//! clocks nor an unreachable database make a live node look dead.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use store::{Migration, Store, Tx};

use crate::app::App;
use crate::clock::shared::Comparison;
use crate::error::{Error, Result};
use crate::jobs::{self, SHARED};
use crate::leases::{self, LeaseTable};
use crate::loops::{self, Poll, Pulse};
use crate::registry::registry;

/// Interval of the heartbeat.
const BEAT: Duration = Duration::from_secs(2);
/// Number of missed heartbeats after which a node is considered dead: ten seconds.
const MISSED: u32 = 5;
/// From this many seconds on, a difference between the machine's clock and the database's is logged.
const DIFFERENT: i64 = 10;
/// Time limit for deregistering a node that stops.
const GOODBYE: Duration = Duration::from_secs(5);

/// The table of nodes.
pub const MIGRATION: Migration = Migration {
    number: 7,
    name: "nodes",
    sql: "
CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    beat BIGINT NOT NULL
) STRICT;
",
};

/// Registers this node and starts its heartbeat. A process on SQLite is the only one and needs none. If another node is
/// registered, it may have died; on SQLite it has.
pub fn start(app: &Arc<App>) -> Result<()> {
    let own = app.clone();
    if app.store.write_now(SHARED, move |tx| beat(tx, &own.node))?.len() > 1 {
        registry().after_crash.iter().for_each(|hook| hook(app));
    }
    if !app.store.is_shared() {
        let own = app.clone();
        app.store.write_now(SHARED, move |tx| {
            tx.execute("DELETE FROM nodes WHERE id <> $1", &[(&own.node).into()]).map(drop)
        })?;
        return Ok(());
    }
    loops::keep(app, "heartbeat", loops::STALL_TIMEOUT, heartbeat);
    Ok(())
}

async fn heartbeat(app: Arc<App>, pulse: Pulse) {
    let mut seen = Seen::default();
    let mut is_different = false;
    // A node that backs off after an error would look dead.
    let mut poll = Poll::every(BEAT).steady();
    loop {
        poll.wait(&pulse).await;
        let own = app.clone();
        // Not behind the other writes of this node, of which there may be many.
        let nodes = app
            .store
            .write_urgently(SHARED, move |tx| Ok::<_, Error>((beat(tx, &own.node)?, Comparison::make(tx)?)))
            .await;
        let beaten = match nodes {
            Ok((nodes, compared)) => {
                app.correct_clock(compared);
                is_different = tell_difference(&app, is_different);
                for (node, beat) in seen.look(nodes, &app.node) {
                    declare_dead(&app, node, beat).await;
                }
                Ok(false)
            }
            Err(error) => {
                // The other nodes may have had the same problem.
                seen = Seen::default();
                Err(error)
            }
        };
        poll.turned(beaten, "Cannot write the heartbeat of this node.");
    }
}

/// Logs that the machine's clock differs from the database's, once; returns whether it does.
fn tell_difference(app: &App, is_known: bool) -> bool {
    let seconds = app.clock.shared().map_or(0, |time| time.seconds_ahead());
    let is_different = seconds.abs() >= DIFFERENT;
    if is_different && !is_known {
        tracing::warn!(
            seconds_ahead = seconds,
            "The clock of this machine differs from that of the database, which is used. Synchronize both clocks."
        );
    }
    is_different
}

async fn declare_dead(app: &Arc<App>, node: String, beat: i64) {
    let own = node.clone();
    let tables = registry().leases;
    match app.store.write(SHARED, move |tx| bury(tx, tables, &own, beat)).await {
        Ok(true) => tracing::warn!(%node, "A node died; other nodes take over its work."),
        Ok(false) => {}
        Err(error) => tracing::warn!(%node, cause = %error, "Cannot release the work of a dead node yet."),
    }
}

/// Writes the heartbeat of a node; returns the last heartbeat of each node.
fn beat(tx: &mut Tx, node: &str) -> Result<Vec<(String, i64)>> {
    tx.execute(
        "INSERT INTO nodes (id, beat) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET beat = nodes.beat + 1",
        &[node.into()],
    )?;
    tx.all("SELECT id, beat FROM nodes", &[], |row| Ok((row.text(0)?.to_string(), row.int(1)?)))
}

/// Returns the nodes that are registered: none of them has missed its heartbeats for long.
pub fn registered(tx: &mut Tx) -> Result<HashSet<String>> {
    Ok(tx.all("SELECT id FROM nodes", &[], |row| Ok::<_, Error>(row.text(0)?.to_string()))?.into_iter().collect())
}

/// Whether a node writes heartbeats. Looks for as long as it takes to see one, unless no node is registered.
pub fn any_alive(store: &Store) -> Result<bool> {
    let look = || {
        store.read_now(|tx| match tx.tables()?.iter().any(|table| table == "nodes") {
            true => tx.all("SELECT id, beat FROM nodes ORDER BY id", &[], |row| {
                Ok::<_, store::Error>((row.text(0)?.to_string(), row.int(1)?))
            }),
            false => Ok(Vec::new()),
        })
    };
    let before = look()?;
    if before.is_empty() {
        return Ok(false);
    }
    std::thread::sleep(BEAT * 2);
    Ok(look()? != before)
}

/// Releases the work of a node, unless it has written a heartbeat since; returns whether it was released.
fn bury(tx: &mut Tx, tables: &[&LeaseTable], node: &str, beat: i64) -> Result<bool> {
    let last = [node.into(), beat.into()];
    if tx.first("SELECT 1 FROM nodes WHERE id = $1 AND beat = $2", &last, |_| Ok::<_, store::Error>(()))?.is_none() {
        return Ok(false);
    }
    leases::end_of(tx, tables, node)?;
    // A node that was cut off while writing its heartbeat may still lock its row for a while.
    let found = format!("SELECT id FROM nodes WHERE id = $1 AND beat = $2{}", tx.dialect().skip_locked());
    tx.execute(&format!("DELETE FROM nodes WHERE id IN ({found})"), &last)?;
    Ok(true)
}

/// Deregisters this node and releases its unfinished work.
pub async fn leave(app: &Arc<App>) {
    let own = app.clone();
    let left = app.store.write(SHARED, move |tx| {
        tx.execute("DELETE FROM nodes WHERE id = $1", &[(&own.node).into()])?;
        jobs::give_back(tx, &own.node)?;
        leases::end_of(tx, registry().leases, &own.node)
    });
    if !matches!(tokio::time::timeout(GOODBYE, left).await, Ok(Ok(()))) {
        tracing::warn!(
            "Cannot release the unfinished work of this node; other nodes take it over when they miss its heartbeat."
        );
    }
}

/// The last heartbeats, and how often each has been missed since.
#[derive(Default)]
struct Seen(HashMap<String, (i64, u32)>);

impl Seen {
    /// Returns the dead nodes, with their last heartbeat.
    fn look(&mut self, nodes: Vec<(String, i64)>, own: &str) -> Vec<(String, i64)> {
        let others = nodes.into_iter().filter(|(node, _)| node != own);
        let counted = others.map(|(node, beat)| {
            let missed = self.0.get(&node).filter(|(last, _)| *last == beat).map_or(0, |(_, missed)| missed + 1);
            (node, (beat, missed))
        });
        self.0 = counted.collect();
        let dead = self.0.iter().filter(|(_, (_, missed))| *missed >= MISSED);
        dead.map(|(node, (beat, _))| (node.clone(), *beat)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_dead_after_five_missed_heartbeats() {
        let mut seen = Seen::default();
        let nodes = |beat| vec![("me".to_string(), 1), ("it".to_string(), beat)];
        for look in 0..5 {
            assert!(seen.look(nodes(7), "me").is_empty(), "{look}");
        }
        assert_eq!(seen.look(nodes(7), "me"), [("it".to_string(), 7)]);
        assert!(seen.look(nodes(8), "me").is_empty(), "it is alive after all");
        assert!(seen.look(vec![], "me").is_empty());
        assert!(seen.look(nodes(8), "me").is_empty(), "a node that returns starts again");
    }
}
