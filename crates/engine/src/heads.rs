//! Signed heads: the end of each audit chain, signed with a key outside the database. A chain proves that its rows belong
//! together; a head proves that they are all there, and that nobody hashed them again.
//!
//! Heads are signed every few seconds, apart from the writes. A head only follows from the one before: if the log no longer
//! has the row that was signed, or if a row after it has no mark of the key, nothing is signed, and a verification says what is
//! wrong. So a mark is checked once; after that, the head covers its row. The list of accounts is signed in the same way.

mod checking;
mod file;
mod head;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use store::{Migration, Row, Store, Tx};

use crate::accounts::{Account, SHARED};
use crate::app::App;
use crate::error::{Error, Result};
use crate::log;
use crate::loops::{self, Poll};
use crate::secrets::signing::Proof;
use crate::secrets::vault::Vault;
pub use checking::{Marks, check, check_seen, compare, unlisted, unproven};
pub use file::{read, written};
pub use head::Head;

/// The table. The row of account 0 is the list of accounts. A head remains if its account is deleted.
pub const MIGRATION: Migration = Migration {
    number: 4,
    name: "ends of the log",
    sql: "
CREATE TABLE log_heads (
    account_id BIGINT NOT NULL PRIMARY KEY,
    uid TEXT NOT NULL,
    seq BIGINT NOT NULL,
    hash BLOB NOT NULL,
    signature BLOB NOT NULL
) STRICT, WITHOUT ROWID;
",
};

/// How often heads are signed.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often all logs are looked at, for lines that another process wrote and did not sign.
const SWEEP: Duration = Duration::from_secs(3600);
/// The name of the list of accounts among the heads. Each account is hashed with what precedes it.
const ACCOUNTS: &str = "accounts, chained";

/// Signs heads as long as the process runs.
pub fn start(app: &Arc<App>) {
    loops::keep(app, "heads", loops::STALL_TIMEOUT, |app, pulse| async move {
        let mut poll = Poll::every(INTERVAL);
        let (mut swept, mut earlier) = (None::<Instant>, BTreeSet::new());
        loop {
            poll.wait(&pulse).await;
            // A line is noted before its transaction commits, so an account is looked at twice.
            let logged = app.wakeup.take_logged();
            let accounts: BTreeSet<i64> = logged.union(&earlier).copied().collect();
            let is_sweep = swept.is_none_or(|at| at.elapsed() >= SWEEP);
            let own = app.clone();
            let signed = tokio::task::spawn_blocking(move || match is_sweep {
                true => sign(&own.store, &own.site.vault),
                false => sign_some(&own.store, &own.site.vault, &accounts),
            });
            let signed = signed.await.unwrap_or_else(|panic| Err(Error::internal(panic.to_string())));
            if signed.is_ok() {
                swept = if is_sweep { Some(Instant::now()) } else { swept };
                earlier = logged;
            } else {
                earlier.extend(logged);
            }
            poll.turned(signed.map(|()| false), "Cannot sign the heads of the logs at the moment.");
        }
    });
}

/// Signs the heads of all chains that have grown.
pub fn sign(store: &Store, vault: &Arc<Vault>) -> Result<()> {
    Successors::of_all(store, vault)?.save(store)
}

/// Signs the heads of these chains, if they have one and have grown. Others are left to the next sweep.
pub fn sign_some(store: &Store, vault: &Arc<Vault>, accounts: &BTreeSet<i64>) -> Result<()> {
    let mut found = Successors::default();
    for number in accounts.iter().copied() {
        let read = store.read_now(|tx| {
            let Some(head) = saved_of(tx, number)? else { return Ok(None) };
            let account = Account::numbered(tx, number)?;
            if log::last(tx, number)? == head.seq {
                return Ok(None);
            }
            let end = End::read(tx, vault, &account, Some(&head))?;
            Ok::<_, Error>(Some((account, head, end)))
        })?;
        let Some((account, head, end)) = read else { continue };
        match head.seq < end.seq && end.continues {
            true => found.new.push((number, Head::sign(vault, &account.uid, end.seq, end.hash)?)),
            false => found.wrong.push(account.uid),
        }
    }
    found.save(store)
}

fn read_all(store: &Store, vault: &Arc<Vault>) -> Result<(State, HashMap<i64, End>)> {
    store.read_now(|tx| {
        let state = State::read(tx)?;
        let ends = ends(tx, vault, &state)?;
        Ok((state, ends))
    })
}

/// Signs the head of an account that is being created, and the list of accounts.
pub fn sign_new(tx: &mut Tx, vault: &Arc<Vault>, account: &Account) -> Result<()> {
    let end = End::read(tx, vault, account, None)?;
    let count = tx.int("SELECT count(*) FROM accounts", &[])?;
    let list = match saved_of(tx, SHARED)? {
        // Only the first account of a database has no signed list before it.
        None if count == 1 => chained(&[], &account.uid),
        Some(list) if list.uid == ACCOUNTS && list.seq + 1 == count && list.proof(vault)? == Proof::Signed => {
            chained(&list.hash, &account.uid)
        }
        // Verifying the database says what is wrong with the list.
        _ => return Ok(()),
    };
    save(tx, account.number, &Head::sign(vault, &account.uid, end.seq, end.hash)?)?;
    save(tx, SHARED, &Head::sign(vault, ACCOUNTS, count, list)?)
}

/// Returns the hash of the list of accounts after this one.
fn chained(before: &[u8], uid: &str) -> Vec<u8> {
    Sha256::new().chain_update(before).chain_update(uid).finalize().to_vec()
}

/// Signs all heads again with the current key: those that another of the keys signed or, if all keys were lost, every chain as
/// it is now.
pub fn sign_again(store: &Store, vault: &Arc<Vault>, trusts_all: bool) -> Result<()> {
    let own = vault.clone();
    store.write_now(SHARED, move |tx| {
        let state = State::read(tx)?;
        let ends = ends(tx, &own, &state)?;
        for (account, head) in &state.heads {
            if trusts_all {
                tx.execute("DELETE FROM log_heads WHERE account_id = $1", &[(*account).into()])?;
            } else if head.proof(&own)? == Proof::Signed {
                let again = Head::sign(&own, &head.uid, head.seq, head.hash.clone())?;
                tx.execute(
                    // Another node may have saved a later one.
                    "UPDATE log_heads SET signature = $1 WHERE account_id = $2 AND seq = $3",
                    &[again.signature.as_slice().into(), (*account).into(), head.seq.into()],
                )?;
            }
        }
        if !trusts_all {
            return Ok(());
        }
        for account in &state.accounts {
            let Some(end) = ends.get(&account.number) else { continue };
            save(tx, account.number, &Head::sign(&own, &account.uid, end.seq, end.hash.clone())?)?;
        }
        save(tx, SHARED, &state.list(&own)?)
    })
}

/// Saves a head, unless another node has saved a later one.
fn save(tx: &mut Tx, account: i64, head: &Head) -> Result<()> {
    tx.execute(
        "INSERT INTO log_heads (account_id, uid, seq, hash, signature) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (account_id) DO UPDATE SET uid = excluded.uid, seq = excluded.seq, hash = excluded.hash, signature = excluded.signature
         WHERE log_heads.seq < excluded.seq",
        &[
            account.into(),
            (&head.uid).into(),
            head.seq.into(),
            head.hash.as_slice().into(),
            head.signature.as_slice().into(),
        ],
    )?;
    Ok(())
}

const HEAD: &str = "SELECT account_id, uid, seq, hash, signature FROM log_heads";

/// Returns the saved heads by account; account 0 has the list of accounts.
pub fn saved(tx: &mut Tx) -> Result<HashMap<i64, Head>> {
    Ok(tx.all(HEAD, &[], from_row)?.into_iter().collect())
}

/// Returns the saved head of an account.
pub fn saved_of(tx: &mut Tx, account: i64) -> Result<Option<Head>> {
    let found = tx.first(&format!("{HEAD} WHERE account_id = $1"), &[account.into()], from_row)?;
    Ok(found.map(|(_, head)| head))
}

fn from_row(row: &Row) -> Result<(i64, Head)> {
    let head = Head {
        uid: row.text(1)?.to_string(),
        seq: row.int(2)?,
        hash: row.bytes(3)?.to_vec(),
        signature: row.bytes(4)?.to_vec(),
    };
    Ok((row.int(0)?, head))
}

/// The last row of a log.
#[derive(Clone, Debug, Default)]
struct End {
    seq: i64,
    hash: Vec<u8>,
    /// Whether the rows after the signed one continue it, up to the last, and are the program's own.
    continues: bool,
}

impl End {
    /// Reads the end of the log of an account, and the rows since the head was signed; not if the head is none of this
    /// account, since then nothing is signed.
    fn read(tx: &mut Tx, vault: &Vault, account: &Account, head: Option<&Head>) -> Result<End> {
        let (account, uid) = (account.number, &account.uid);
        let index = log::by_seq(tx);
        let sql = format!("SELECT seq, hash FROM log{index} WHERE account_id = $1 ORDER BY seq DESC LIMIT 1");
        let end = tx.first(&sql, &[account.into()], |row| {
            Ok::<_, Error>(End { seq: row.int(0)?, hash: row.bytes(1)?.to_vec(), continues: false })
        })?;
        if let Some(head) = head
            && (head.uid != *uid || head.proof(vault)? != Proof::Signed)
        {
            return Ok(End { continues: false, ..end.unwrap_or_default() });
        }
        let (signed, hash) = head.map_or((0, &[][..]), |head| (head.seq, &*head.hash));
        let is_there = signed == 0 || log::hash_at(tx, account, signed)? == hash;
        let continues = is_there && log::continues(tx, vault, account, signed, hash)?;
        Ok(End { continues, ..end.unwrap_or_default() })
    }
}

/// Returns the ends of all logs. Most have not grown since their head was signed, and are not read.
fn ends(tx: &mut Tx, vault: &Vault, state: &State) -> Result<HashMap<i64, End>> {
    let index = log::by_seq(tx);
    let sql = format!(
        "SELECT id, coalesce((SELECT max(seq) FROM log{index} WHERE log.account_id = accounts.id), 0) FROM accounts"
    );
    let lasts = tx.all(&sql, &[], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?)))?;
    let lasts: HashMap<i64, i64> = lasts.into_iter().collect();
    let end = |account: &Account| match state.heads.get(&account.number) {
        Some(head) if lasts.get(&account.number) == Some(&head.seq) => {
            Ok((account.number, End { seq: head.seq, hash: head.hash.clone(), continues: true }))
        }
        head => Ok((account.number, End::read(tx, vault, account, head)?)),
    };
    state.accounts.iter().map(end).collect()
}

/// What follows from the heads and the logs.
#[derive(Default)]
pub struct Successors {
    /// The heads to save, by account.
    new: Vec<(i64, Head)>,
    /// The ids of the accounts whose log does not continue its head.
    wrong: Vec<String>,
}

impl Successors {
    /// Signs the ends of all chains that have grown, without saving them.
    pub fn of_all(store: &Store, vault: &Arc<Vault>) -> Result<Successors> {
        let (state, ends) = read_all(store, vault)?;
        state.successors(vault, &ends)
    }

    /// Saves the heads whose row is still in the log. It may be lost: a primary shows a write that no standby has if
    /// somebody cancels the wait for one, and another may be promoted since the log was read.
    pub fn save(self, store: &Store) -> Result<()> {
        for uid in self.wrong {
            match uid == ACCOUNTS {
                true => tracing::error!(
                    "The accounts do not continue their signed list, so it is not signed. Verify the database."
                ),
                false => {
                    tracing::error!(account = %uid, "The log does not continue its signed head, so it is not signed. Verify the database.")
                }
            }
        }
        if self.new.is_empty() {
            return Ok(());
        }
        store.write_now(SHARED, move |tx| {
            for (account, head) in &self.new {
                if *account == SHARED || log::hash_at(tx, *account, head.seq)? == head.hash {
                    save(tx, *account, head)?;
                }
            }
            Ok(())
        })
    }
}

/// What is signed and what is there.
pub struct State {
    /// The accounts, oldest first.
    pub accounts: Vec<Account>,
    /// The saved heads.
    pub heads: HashMap<i64, Head>,
}

impl State {
    /// Reads the accounts and the heads.
    pub fn read(tx: &mut Tx) -> Result<State> {
        let accounts = Account::all_to_check(tx)?.into_iter().map(|(account, _)| account).collect();
        Ok(State { accounts, heads: saved(tx)? })
    }

    /// Returns how many accounts the signed list has.
    pub fn listed_accounts(&self) -> usize {
        self.heads.get(&SHARED).map_or(0, |list| usize::try_from(list.seq).unwrap_or_default())
    }

    /// Returns the hash of the first accounts.
    fn listed(&self, count: usize) -> Vec<u8> {
        self.accounts.iter().take(count).fold(Vec::new(), |before, account| chained(&before, &account.uid))
    }

    /// Whether an account comes after those of the signed list, which has all others.
    pub fn is_unlisted(&self, account: &Account) -> bool {
        let place = self.accounts.iter().position(|own| own.number == account.number);
        let Some(list) = self.heads.get(&SHARED) else { return false };
        self.begins_with(list) && place.is_some_and(|place| place >= self.listed_accounts())
    }

    /// Whether a list has exactly the first accounts.
    pub fn begins_with(&self, list: &Head) -> bool {
        let count = self.listed_accounts();
        count <= self.accounts.len() && self.listed(count) == list.hash
    }

    /// Compares the heads with the ends of the logs.
    fn successors(&self, vault: &Vault, ends: &HashMap<i64, End>) -> Result<Successors> {
        let (mut new, mut wrong) = (Vec::new(), Vec::new());
        let list_holds = self.list_holds(vault)?;
        for (place, account) in self.accounts.iter().enumerate() {
            let Some(end) = ends.get(&account.number) else { continue };
            let continues = match self.heads.get(&account.number) {
                Some(head) if head.seq == end.seq && head.hash == end.hash => continue,
                Some(head) => head.seq < end.seq && end.continues,
                // Only a new account has none.
                None => end.continues && list_holds && place >= self.listed_accounts(),
            };
            match continues {
                true => new.push((account.number, Head::sign(vault, &account.uid, end.seq, end.hash.clone())?)),
                false => wrong.push(account.uid.clone()),
            }
        }
        match self.heads.get(&SHARED) {
            Some(list) if self.listed_accounts() == self.accounts.len() && self.begins_with(list) => {}
            Some(_) => match list_holds && self.listed_accounts() < self.accounts.len() {
                true => new.push((SHARED, self.list(vault)?)),
                false => wrong.push(ACCOUNTS.to_string()),
            },
            None if !self.accounts.is_empty() => wrong.push(ACCOUNTS.to_string()),
            None => {}
        }
        Ok(Successors { new, wrong })
    }

    /// Whether the signed list of accounts is the beginning of the accounts that there are.
    fn list_holds(&self, vault: &Vault) -> Result<bool> {
        let Some(list) = self.heads.get(&SHARED).filter(|list| list.uid == ACCOUNTS) else { return Ok(false) };
        Ok(self.begins_with(list) && list.proof(vault)? == Proof::Signed)
    }

    fn list(&self, vault: &Vault) -> Result<Head> {
        let count = self.accounts.len();
        Head::sign(vault, ACCOUNTS, i64::try_from(count).unwrap_or(i64::MAX), self.listed(count))
    }
}
