//! Signed heads: the end of each audit chain, signed with a key outside the database. A chain proves that its rows belong
//! together; a head proves that they are all there, and that nobody hashed them again.
//!
//! Heads are signed every few seconds, apart from the writes. A head only follows from the one before: if the log no longer
//! has the row that was signed, nothing is signed, and a verification says what is wrong. The list of accounts is signed in
//! the same way.

mod file;
mod head;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use store::{Migration, Store, Tx};

use crate::accounts::{Account, SHARED};
use crate::app::App;
use crate::error::{Error, Result};
use crate::loops::{self, Poll};
use crate::secrets::signing::Proof;
use crate::secrets::vault::Vault;
pub use file::{read, written};
pub use head::Head;

/// The table. The row of account 0 is the list of accounts. A head remains if its account is deleted.
pub const MIGRATION: Migration = Migration {
    number: 88,
    name: "signed heads of the log",
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
/// The name of the list of accounts among the heads.
const ACCOUNTS: &str = "accounts";

/// Signs heads as long as the process runs.
pub fn start(app: &Arc<App>) {
    loops::keep(app, "heads", loops::STALL_TIMEOUT, |app, pulse| async move {
        let mut poll = Poll::every(INTERVAL);
        loop {
            poll.wait(&pulse).await;
            let own = app.clone();
            let signed = tokio::task::spawn_blocking(move || sign(&own.store, &own.site.vault)).await;
            let signed = signed.unwrap_or_else(|panic| Err(Error::internal(panic.to_string())));
            poll.turned(signed.map(|()| false), "Cannot sign the heads of the logs at the moment.");
        }
    });
}

/// Signs the heads of all chains that have grown.
pub fn sign(store: &Store, vault: &Arc<Vault>) -> Result<()> {
    let state = store.read_now(|tx| State::read(tx, None))?;
    let Successors { new, wrong } = state.successors(vault)?;
    for uid in wrong {
        tracing::error!(account = %uid, "The log does not continue its signed head, so it is not signed. Verify the database.");
    }
    if new.is_empty() {
        return Ok(());
    }
    store.write_now(SHARED, move |tx| new.iter().try_for_each(|(account, head)| save(tx, *account, head)))
}

/// Signs the heads of a database from before there were any.
pub fn sign_first(store: &Store, vault: &Arc<Vault>) -> Result<()> {
    match store.read_now(|tx| Ok::<_, Error>(tx.int("SELECT count(*) FROM log_heads", &[])?))? {
        0 => sign(store, vault),
        _ => Ok(()),
    }
}

/// Signs the head of an account that is being created, and the list of accounts.
pub fn sign_new(tx: &mut Tx, vault: &Arc<Vault>, account: i64) -> Result<()> {
    let state = State::read(tx, Some(account))?;
    let Successors { new, .. } = state.successors(vault)?;
    new.iter().try_for_each(|(account, head)| save(tx, *account, head))
}

/// Signs all heads again with the current key: those that another of the keys signed or, if all keys were lost, every chain as
/// it is now.
pub fn sign_again(store: &Store, vault: &Arc<Vault>, trusts_all: bool) -> Result<()> {
    let own = vault.clone();
    store.write_now(SHARED, move |tx| {
        let state = State::read(tx, None)?;
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
        for (account, end) in state.looked_at() {
            save(tx, account.number, &Head::sign(&own, &account.uid, end.seq, end.hash.clone())?)?;
        }
        let (count, hash) = state.listed(state.accounts.len());
        save(tx, SHARED, &Head::sign(&own, ACCOUNTS, count, hash)?)
    })
}

/// Saves a head, unless another node has saved a later one.
fn save(tx: &mut Tx, account: i64, head: &Head) -> Result<()> {
    tx.execute(
        "INSERT INTO log_heads (account_id, uid, seq, hash, signature) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (account_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, signature = excluded.signature
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

/// Returns the saved heads by account; account 0 has the list of accounts.
pub fn saved(tx: &mut Tx) -> Result<HashMap<i64, Head>> {
    let rows = tx.all("SELECT account_id, uid, seq, hash, signature FROM log_heads", &[], |row| {
        let head = Head {
            uid: row.text(1)?.to_string(),
            seq: row.int(2)?,
            hash: row.bytes(3)?.to_vec(),
            signature: row.bytes(4)?.to_vec(),
        };
        Ok::<_, Error>((row.int(0)?, head))
    })?;
    Ok(rows.into_iter().collect())
}

/// Returns the hash of a row of the log; empty if there is none.
pub fn hash_at(tx: &mut Tx, account: i64, seq: i64) -> Result<Vec<u8>> {
    let sql = "SELECT hash FROM log WHERE account_id = $1 AND seq = $2";
    let found = tx.first(sql, &[account.into(), seq.into()], |row| Ok::<_, Error>(row.bytes(0)?.to_vec()))?;
    Ok(found.unwrap_or_default())
}

/// The last row of a log.
#[derive(Clone, Debug, Default)]
struct End {
    seq: i64,
    hash: Vec<u8>,
    salted: bool,
    /// Whether the rows after the signed one continue it, up to the last.
    continues: bool,
}

impl End {
    /// Reads the end of the log of an account, and the rows since the head was signed.
    fn read(tx: &mut Tx, account: i64, head: Option<&Head>) -> Result<End> {
        let index = crate::log::by_seq(tx);
        let sql = format!("SELECT seq, hash, version FROM log{index} WHERE account_id = $1 ORDER BY seq DESC LIMIT 1");
        let end = tx.first(&sql, &[account.into()], |row| {
            let (seq, hash, salted) = (row.int(0)?, row.bytes(1)?.to_vec(), row.int(2)? > 1);
            Ok::<_, Error>(End { seq, hash, salted, continues: false })
        })?;
        let (signed, hash) = head.map_or((0, &[][..]), |head| (head.seq, &*head.hash));
        let is_there = signed == 0 || hash_at(tx, account, signed)? == hash;
        let continues = is_there && crate::log::continues(tx, account, signed, hash)?;
        Ok(End { continues, ..end.unwrap_or_default() })
    }
}

/// Returns the ends of all logs. Most have not grown since their head was signed, and are not read.
fn ends(tx: &mut Tx, heads: &HashMap<i64, Head>) -> Result<HashMap<i64, End>> {
    let index = crate::log::by_seq(tx);
    let sql = format!(
        "SELECT id, coalesce((SELECT max(seq) FROM log{index} WHERE log.account_id = accounts.id), 0) FROM accounts"
    );
    let lasts = tx.all(&sql, &[], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?)))?;
    let end = |(account, last): (i64, i64)| match heads.get(&account) {
        Some(head) if head.seq == last => {
            Ok((account, End { seq: last, hash: head.hash.clone(), salted: true, continues: true }))
        }
        head => Ok((account, End::read(tx, account, head)?)),
    };
    lasts.into_iter().map(end).collect()
}

/// What follows from the heads and the logs.
struct Successors {
    /// The heads to save, by account.
    new: Vec<(i64, Head)>,
    /// The ids of the accounts whose log does not continue its head.
    wrong: Vec<String>,
}

/// What is signed and what is there.
pub struct State {
    /// The accounts, oldest first.
    pub accounts: Vec<Account>,
    /// The saved heads.
    pub heads: HashMap<i64, Head>,
    ends: HashMap<i64, End>,
    /// Whether an account is being created.
    is_new: bool,
}

impl State {
    /// Reads the heads and the ends of the logs, or that of one account, which is being created.
    pub fn read(tx: &mut Tx, new: Option<i64>) -> Result<State> {
        let (accounts, heads) = (Account::all(tx)?, saved(tx)?);
        let ends = match new {
            Some(new) => HashMap::from([(new, End::read(tx, new, None)?)]),
            None => ends(tx, &heads)?,
        };
        Ok(State { accounts, heads, ends, is_new: new.is_some() })
    }

    fn looked_at(&self) -> impl Iterator<Item = (&Account, &End)> {
        self.accounts.iter().filter_map(|account| Some((account, self.ends.get(&account.number)?)))
    }

    /// Whether the database is from before heads were signed: there is none, and no row of a version that signs them.
    pub fn is_unsigned(&self) -> bool {
        self.heads.is_empty() && self.ends.values().all(|end| !end.salted)
    }

    /// Returns how many accounts the signed list has.
    pub fn listed_accounts(&self) -> usize {
        self.heads.get(&SHARED).map_or(0, |list| usize::try_from(list.seq).unwrap_or_default())
    }

    /// Returns the number and the hash of the first accounts.
    pub fn listed(&self, count: usize) -> (i64, Vec<u8>) {
        let mut hasher = Sha256::new();
        self.accounts.iter().take(count).for_each(|account| hasher.update(format!("{}\n", account.uid)));
        (i64::try_from(count).unwrap_or(i64::MAX), hasher.finalize().to_vec())
    }

    /// Compares the heads with the logs.
    fn successors(&self, vault: &Vault) -> Result<Successors> {
        let (mut new, mut wrong) = (Vec::new(), Vec::new());
        // The rows of the first account are new, and those of a database from before are not salted.
        let is_first = match self.is_new {
            true => self.heads.is_empty() && self.accounts.len() == 1,
            false => self.is_unsigned(),
        };
        let list_holds = self.list_holds(vault)?;
        for (place, account) in self.accounts.iter().enumerate() {
            let Some(end) = self.ends.get(&account.number) else { continue };
            let continues = match self.heads.get(&account.number) {
                Some(head) if head.seq == end.seq && head.hash == end.hash => continue,
                Some(head) => {
                    head.uid == account.uid
                        && head.seq < end.seq
                        && end.continues
                        && head.proof(vault)? == Proof::Signed
                }
                // Only a new account has none.
                None => end.continues && (is_first || (list_holds && place >= self.listed_accounts())),
            };
            match continues {
                true => new.push((account.number, Head::sign(vault, &account.uid, end.seq, end.hash.clone())?)),
                false => wrong.push(account.uid.clone()),
            }
        }
        match self.heads.get(&SHARED) {
            Some(list)
                if self.listed_accounts() == self.accounts.len() && list.hash == self.listed(self.accounts.len()).1 => {
            }
            Some(_) => match list_holds && self.listed_accounts() < self.accounts.len() {
                true => new.push((SHARED, self.list(vault)?)),
                false => wrong.push(ACCOUNTS.to_string()),
            },
            None if is_first && !self.accounts.is_empty() => new.push((SHARED, self.list(vault)?)),
            None if !self.accounts.is_empty() => wrong.push(ACCOUNTS.to_string()),
            None => {}
        }
        Ok(Successors { new, wrong })
    }

    /// Whether the signed list of accounts is the beginning of the accounts that there are.
    fn list_holds(&self, vault: &Vault) -> Result<bool> {
        let Some(list) = self.heads.get(&SHARED).filter(|list| list.uid == ACCOUNTS) else { return Ok(false) };
        Ok(self.listed(self.listed_accounts()).1 == list.hash && list.proof(vault)? == Proof::Signed)
    }

    fn list(&self, vault: &Vault) -> Result<Head> {
        let (count, hash) = self.listed(self.accounts.len());
        Head::sign(vault, ACCOUNTS, count, hash)
    }
}
