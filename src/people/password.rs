//! Passwords: which ones are allowed, and their hashes. A hash takes 19 MiB and some milliseconds, so only two are
//! calculated at a time. Strangers and those who are known take turns, so that a flood of strangers delays nobody else.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use engine::config::Config;
use engine::error::{Code, Error, FieldCode, Result, Violation, violation};
use engine::services::Services;
use store::Places;

/// Minimum length, in characters.
pub const SHORTEST: usize = 12;
/// Maximum length, in characters.
pub const LONGEST: usize = 256;

/// Hashes calculated at a time.
const AT_A_TIME: usize = 2;
/// How long a request waits for its turn: about three hundred others come first, half as many of its own IP address.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A hash with the usual parameters that no password matches: checking a password against it takes as long as against a
/// real one.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$a2FudG9vci1ub2JvZHk$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The passwords that people use most: those of at least twelve characters, and the most common shorter ones, since
/// many people append some digits to one. From the list of zxcvbn (MIT licence).
static COMMON: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("common_passwords.txt").lines().collect());

/// Words that somebody tries first at this program, in both of its languages, and that are not on the list.
const OBVIOUS: [&str; 14] = [
    "kantoor",
    "administrator",
    "administratie",
    "administration",
    "beheerder",
    "boekhouder",
    "boekhouding",
    "bookkeeper",
    "bookkeeping",
    "accountant",
    "factuur",
    "facturen",
    "invoice",
    "invoices",
];

/// Checks whether a person may use a password.
pub fn check(password: &str, email: &str) -> Result<(), Violation> {
    let refuse = |message: String| Err(violation(FieldCode::InvalidFormat, message));
    let length = password.chars().count();
    if length < SHORTEST {
        return refuse(format!("must have at least {SHORTEST} characters"));
    }
    if length > LONGEST {
        return Err(violation(FieldCode::TooLong, format!("may have at most {LONGEST} characters")));
    }
    let folded = password.to_lowercase();
    if is_address(&folded, &email.to_lowercase()) {
        return refuse("must not be your e-mail address, nor the part before the @".to_string());
    }
    if is_common(&folded) {
        return refuse("is one of the most common passwords; choose another".to_string());
    }
    Ok(())
}

/// Whether a password is an e-mail address, or has only the letters of one or of its part before the @: once or more, with any
/// digits and punctuation.
fn is_address(folded: &str, email: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|letter| letter.is_alphabetic()).collect::<String>();
    let (own, local) = (letters(folded), email.split('@').next().unwrap_or_default());
    let consists_of = |name: &str| {
        let name = letters(name);
        !own.is_empty() && !name.is_empty() && own.replace(&name, "").is_empty()
    };
    folded == email || consists_of(email) || consists_of(local)
}

/// Whether a password in lower case is common: by itself, without the digits and punctuation around it, as a common
/// password that is repeated, as one with a little more before or after it, or as a few characters that are repeated.
fn is_common(folded: &str) -> bool {
    if folded.chars().collect::<HashSet<_>>().len() < 4 {
        return true;
    }
    let letters = folded.trim_matches(|letter: char| !letter.is_alphabetic());
    let is_common = |word: &str| is_listed(word) || repeats_a_common_one(word);
    [folded, letters].into_iter().any(is_common) || extends_a_common_one(folded)
}

fn is_listed(word: &str) -> bool {
    COMMON.contains(word) || OBVIOUS.contains(&word)
}

/// Whether a common password makes up two thirds of the word or more.
fn extends_a_common_one(word: &str) -> bool {
    let length = word.len();
    let mut parts = (length.div_ceil(3) * 2..length).flat_map(|part| [word.get(..part), word.get(length - part..)]);
    parts.any(|part| part.is_some_and(is_listed))
}

fn repeats_a_common_one(word: &str) -> bool {
    let parts = (1..=word.len() / 2).filter(|length| word.len().is_multiple_of(*length));
    let mut parts = parts.filter_map(|length| word.get(..length));
    parts.any(|part| is_listed(part) && part.repeat(word.len() / part.len()) == word)
}

/// The line in which somebody waits for a hash. Both lines take turns, whatever their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Of anybody.
    Strangers,
    /// Of those who have a session or a link, or an IP address from which the person has signed in.
    Known,
}

/// Calculates hashes, two at a time.
pub struct Passwords {
    turns: Arc<Places>,
    calculated: AtomicU64,
}

/// Opens the calculation of hashes.
pub fn open(_: &Config, _: &str, services: &mut Services) -> Result<()> {
    let passwords = Passwords::new();
    services.pool(passwords.turns.clone());
    services.add(passwords);
    Ok(())
}

impl Passwords {
    fn new() -> Passwords {
        Passwords { turns: Places::new("sign-ins", AT_A_TIME), calculated: AtomicU64::new(0) }
    }

    /// Returns how many hashes were calculated: an unknown person costs as many as a known one.
    pub fn calculated(&self) -> u64 {
        self.calculated.load(Ordering::Relaxed)
    }

    /// Returns the hash of a new password, which takes a link or a session to choose.
    pub async fn hash(&self, password: String) -> Result<String> {
        let hashed = self.apart(Line::Known, move || {
            let hash = argon2()?.hash_password(password.as_bytes()).map_err(failed)?;
            Ok(hash.to_string())
        });
        hashed.await
    }

    /// Whether the password has this hash. Without a hash, it takes as long and does not.
    pub async fn matches(&self, line: Line, password: String, hash: String) -> Result<bool> {
        let matched = self.apart(line, move || {
            // Nothing matches a hash that was damaged in the database.
            let is_usable = PasswordHash::new(&hash).is_ok();
            let parsed = PasswordHash::new(if is_usable { &hash } else { NOBODYS }).map_err(failed)?;
            let matches = argon2()?.verify_password(password.as_bytes(), &parsed).is_ok();
            Ok(matches && is_usable)
        });
        matched.await
    }

    /// Runs `work` on a blocking thread when it is its turn.
    async fn apart<T: Send + 'static>(
        &self,
        line: Line,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = self.turns.take_within(line as i64, MAX_WAIT).await.ok_or_else(busy)?;
        self.calculated.fetch_add(1, Ordering::Relaxed);
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        done.await.map_err(failed)?
    }
}

fn argon2() -> Result<Argon2<'static>> {
    let params = Params::new(19 * 1024, 2, 1, None).map_err(failed)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn busy() -> Error {
    let message = "Many people are signing in at the moment; retry shortly.";
    Error { retry_after: Some(10), ..Error::new(Code::Overloaded, message) }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("a password cannot be hashed: {error}"))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn common_passwords_are_refused() {
        assert_eq!(COMMON.len(), 10_000);
        for bad in [
            "short",
            "elevenchars",
            "anna@jansen.example",
            "ANNA@jansen.example",
            "123456789012",
            "passwordpassword",
            "Password12345",
            "123456password!!!",
            "leavemealone",
            "aaaaaaaaaaaa",
            "administrator",
            "Administrator1",
            "2026administrator!",
            "kantoorkantoor",
            "Kantoor-2026!",
            "anna.2026.anna",
            "Anna!Jansen!Example",
        ] {
            assert!(check(bad, "anna@jansen.example").is_err(), "{bad}");
        }
        assert!(OBVIOUS.iter().all(|word| !COMMON.contains(word)), "they are on the list");
        assert!(
            check("m.de.boer-2026", "m.de.boer@a.example").is_err()
                && check("mdeboer#12345", "m.de.boer@a.example").is_err()
        );
        assert!(check(&"x1".repeat(129), "").is_err(), "too long");
        for good in [
            "correct horse battery",
            "twaalf letters",
            "één € per dag",
            "dragon slays monkey",
            "anna likes her kantoor",
            "4711-0815-2020",
        ] {
            assert!(check(good, "anna@jansen.example").is_ok(), "{good}");
        }
    }

    #[tokio::test]
    async fn a_hash_matches_its_password_alone() {
        let passwords = Passwords::new();
        let hash = passwords.hash("correct horse battery".to_string()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let matches =
            |password: &str, hash: &str| passwords.matches(Line::Strangers, password.to_string(), hash.to_string());
        assert!(matches("correct horse battery", &hash).await.unwrap());
        assert!(!matches("correct horse batterx", &hash).await.unwrap());
        assert!(!matches("correct horse battery", "").await.unwrap());
        assert!(!matches("", NOBODYS).await.unwrap());
    }

    #[tokio::test]
    async fn a_known_person_does_not_wait_for_strangers() {
        let passwords = Passwords::new();
        let _running = passwords.turns.take_all(Line::Strangers as i64);
        let matches = |line| Box::pin(passwords.matches(line, String::new(), String::new()));
        let mut strangers: Vec<_> = (0..20).map(|_| matches(Line::Strangers)).collect();
        strangers.iter_mut().for_each(|wait| assert!(wait.now_or_never().is_none()));
        assert!(!matches(Line::Known).await.unwrap());
        strangers.iter_mut().for_each(|wait| assert!(wait.now_or_never().is_none()));
    }
}
