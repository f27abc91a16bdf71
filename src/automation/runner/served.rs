//! Which accounts have a task that advances their runs: one each, so that an account with much to do delays no other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The accounts that have a task, and whether it looks for more work.
#[derive(Default)]
pub struct Serving(Mutex<HashMap<i64, bool>>);

/// The task of an account.
pub struct Served {
    serving: Arc<Serving>,
    account: i64,
    over: bool,
}

impl Serving {
    /// Announces the task of an account. If there is one, it looks for more work instead.
    pub fn start(self: &Arc<Serving>, account: i64) -> Option<Served> {
        match self.all().entry(account) {
            Entry::Occupied(mut more) => {
                more.insert(true);
                None
            }
            Entry::Vacant(entry) => {
                entry.insert(true);
                Some(Served { serving: self.clone(), account, over: false })
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<i64, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Served {
    /// Lets the task look for more work.
    pub fn has_more(&self) {
        self.serving.all().insert(self.account, true);
    }

    /// Whether there may be more work. If not, the task is over.
    pub fn goes_on(&mut self) -> bool {
        let mut all = self.serving.all();
        let more = all.insert(self.account, false).unwrap_or_default();
        if !more {
            all.remove(&self.account);
            self.over = true;
        }
        more
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // After a panic, the account must get another task.
        if !self.over {
            self.serving.all().remove(&self.account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_one_task_that_misses_nothing() {
        let serving = Arc::<Serving>::default();
        let mut task = serving.start(1).unwrap();
        assert!(task.goes_on());
        assert!(serving.start(1).is_none() && task.goes_on(), "it looks again");
        task.has_more();
        assert!(task.goes_on() && !task.goes_on());
        let next = serving.start(1).unwrap();
        drop(task);
        assert!(serving.start(1).is_none(), "the next one is still there");
        drop(next);
        assert!(serving.start(1).is_some(), "as after a panic");
    }
}
