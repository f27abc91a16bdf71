//! Chooses the trigrams to look up. A trigram index reads a list of texts for each trigram, and the list of a common
//! one is long: a few rare trigrams are enough, since their results are compared with all of the words anyway. A sample
//! of the texts of all accounts, which share the index, determines which are rare.

use std::collections::{BTreeMap, BTreeSet};

use store::{Result, Tx, Value};

/// The sample has one in this many texts.
const ONE_OF: i64 = 128;
/// Number of texts to sample at a time.
const AT_ONCE: i64 = 8;
/// Number of rows per statement.
const ROWS: usize = 32;
/// Reading an entry of a list takes this fraction of the time to compare a text (measured on SQLite: 25 nanoseconds and
/// one and a half microseconds).
const READ: u64 = 60;
/// Comparing a text takes this fraction of that time when the texts of an account are read in turn, not found one by one.
const IN_TURN: u64 = 5;
/// What is found by the index costs this factor more: a list also reads its records, and sorts them.
const RECORDS: u64 = 2;
/// The cost that nobody notices, in texts to compare: half a millisecond.
const LITTLE: u64 = 300;
/// The first letters of a long word have enough trigrams.
const MAX_PIECES: usize = 48;

/// A trigram of the words.
struct Piece {
    letters: String,
    start: usize,
    word: usize,
    /// The approximate number of texts that contain it.
    texts: u64,
}

/// What to look up in the index, and whether that is faster than comparing the texts of the account.
pub struct Asked {
    /// The trigrams, with their positions.
    pub pieces: Vec<(usize, String)>,
    /// The number of texts that may match, of all accounts.
    pub found: u64,
    /// The number of texts to find and compare.
    compared: u64,
    /// How long it takes to read the lists of the trigrams, in texts to compare.
    read: u64,
    /// The number of texts of all accounts that have the rarest of the trigrams.
    pub most: u64,
    /// How many texts there are.
    pub sizes: Sizes,
}

/// Numbers of texts.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Those of the account.
    pub own: u64,
    /// Those of all accounts, of which a sample was counted.
    all: u64,
}

impl Sizes {
    /// Whether the account has so many texts that reading the table of all of them is faster than finding its own one by one, which
    /// takes more than twice as long for each.
    pub fn are_most(self) -> bool {
        self.own >= MANY && self.own.saturating_mul(2) >= self.all
    }
}

/// Fewer texts are compared within a few milliseconds, however they are found.
const MANY: u64 = 20_000;

/// How near to the start of a list its matches must be expected for it to be read from there: they may be further on.
const NEARER: u64 = 4;

impl Asked {
    /// Whether the index is faster if all matches and their records are read. It has the texts of all accounts: where it would
    /// read more than the account has, the account's own texts are compared instead.
    pub fn is_faster(&self) -> bool {
        self.compared.saturating_mul(RECORDS).saturating_add(self.read) <= LITTLE.max(self.sizes.own / IN_TURN)
    }

    /// Whether the index is faster if any `most` matches of the account are enough.
    pub fn is_faster_for_any(&self, most: u64) -> bool {
        let until = most.saturating_mul(self.sizes.all) / self.sizes.own.max(1);
        self.compared.min(until).saturating_add(self.read) <= LITTLE.max(self.until(most) / IN_TURN)
    }

    /// Whether the index is faster if the first `count` matches are wanted, in the order of the texts: it has another order, so
    /// all matches are found and sorted.
    pub fn is_faster_for_first(&self, count: u64) -> bool {
        let until = self.until(count).saturating_mul(NEARER).min(self.sizes.own);
        self.compared.saturating_add(self.read) <= LITTLE.max(until / IN_TURN)
    }

    /// How many texts of the account are compared in turn until this many match, if it has as many as others.
    fn until(&self, count: u64) -> u64 {
        (count.saturating_mul(self.sizes.all) / self.found.max(1)).min(self.sizes.own)
    }
}

/// Returns the trigrams of `folded` to look up for records of these kinds.
pub fn to_ask_for(tx: &mut Tx, account: i64, kinds: &[&'static str], folded: &str) -> Result<Asked> {
    let mut pieces = cut(folded);
    let dialect = tx.dialect();
    let is_indexed = |piece: &Piece| dialect.indexes(&piece.letters);
    if pieces.iter().any(is_indexed) {
        pieces.retain(is_indexed);
    }
    pieces.truncate(MAX_PIECES);
    let (all, own) = count(tx, account, kinds, &mut pieces)?;
    let (mut chosen, found) = choose(pieces, all);
    chosen.sort_by_key(|piece| piece.start);
    let (compared, read) = cost(&chosen, found);
    let most = rarest(&chosen);
    let pieces = chosen.into_iter().map(|piece| (piece.start, piece.letters)).collect();
    Ok(Asked { pieces, found, compared, read, most, sizes: Sizes { own, all } })
}

/// Returns about how many texts have one or two letters, and a certain third one after them.
pub fn starting_with(tx: &mut Tx, letters: &str) -> Result<u64> {
    let sql = "SELECT coalesce(max(texts), 0) FROM search_pieces WHERE piece > $1 AND piece < $2";
    let texts = tx.int(sql, &[letters.into(), format!("{letters}{}", char::MAX).into()])?;
    Ok(texts.saturating_mul(ONE_OF).unsigned_abs())
}

/// Returns how many texts there are.
pub fn sizes(tx: &mut Tx, account: i64, kinds: &[&'static str]) -> Result<Sizes> {
    let (all, own) = count(tx, account, kinds, &mut [])?;
    Ok(Sizes { own, all })
}

/// Sets the number of texts of each trigram; returns the total number of texts, and the number of those of the account.
fn count(tx: &mut Tx, account: i64, kinds: &[&'static str], pieces: &mut [Piece]) -> Result<(u64, u64)> {
    let letters = pieces.iter().map(|piece| piece.letters.clone());
    let mut values: Vec<Value> = [String::new()].into_iter().chain(letters).map(Value::from).collect();
    // One by one: for `IN`, PostgreSQL would scan the whole table.
    let one = |n: usize| format!("SELECT piece, texts FROM search_pieces WHERE piece = ${n}");
    let mut parts: Vec<String> = (1..=values.len()).map(one).collect();
    let place = values.len() + 1;
    values.push(account.into());
    values.extend(kinds.iter().map(|kind| Value::from(*kind)));
    parts.extend((1..=kinds.len()).map(|n| {
        format!("SELECT '{OWN}', total FROM record_counts WHERE account_id = ${place} AND kind = ${}", place + n)
    }));
    let (mut all, mut own) = (0, 0);
    tx.each(&parts.join(" UNION ALL "), &values, |row| {
        let (letters, texts) = (row.text(0)?, row.int(1)?);
        let sampled = texts.saturating_mul(ONE_OF).unsigned_abs();
        match pieces.iter_mut().find(|piece| piece.letters == letters) {
            Some(piece) => piece.texts = sampled,
            None if letters == OWN => own += texts.unsigned_abs(),
            None => all = sampled,
        }
        Ok::<(), store::Error>(())
    })?;
    Ok((all, own))
}

/// No trigram: marks the number of texts of the account.
const OWN: &str = "-";

/// Returns how many texts are compared that have these trigrams, and how long it takes to read their lists, in texts to compare.
/// The estimate of `found` takes words to be independent, which names are not ("van der"): twice as many digits may remain, up to
/// all that have the rarest trigram.
fn cost(chosen: &[Piece], found: u64) -> (u64, u64) {
    let rarest = rarest(chosen);
    (rarest.saturating_mul(found.min(rarest)).isqrt(), chosen.iter().map(|piece| piece.texts / READ).sum())
}

fn rarest(chosen: &[Piece]) -> u64 {
    chosen.iter().map(|piece| piece.texts).min().unwrap_or_default()
}

/// Returns the number of texts that are newer than the sample.
pub fn unsampled(tx: &mut Tx) -> Result<i64> {
    let last = tx.int("SELECT coalesce(max(number), 0) FROM search_texts", &[])?;
    Ok(last - sampled(tx)? * ONE_OF)
}

fn sampled(tx: &mut Tx) -> Result<i64> {
    tx.int("SELECT texts FROM search_pieces WHERE piece = ''", &[])
}

/// Counts the trigrams of one in 128 texts since the last time. Changed and deleted texts are not subtracted: it
/// matters which trigrams are rare, not exactly how rare.
pub fn sample(tx: &mut Tx) -> Result<()> {
    let from = sampled(tx)?;
    let until = from + (unsampled(tx)? / ONE_OF).clamp(0, AT_ONCE);
    // Another node may be doing the same.
    let claim = "UPDATE search_pieces SET texts = $1 WHERE piece = '' AND texts = $2";
    if from == until || tx.execute(claim, &[until.into(), from.into()])? == 0 {
        return Ok(());
    }
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for part in from..until {
        // Not always the first: consecutive texts may alternate between two kinds.
        let (before, last) = (part * ONE_OF + part * 37 % ONE_OF, (part + 1) * ONE_OF);
        let one = "SELECT folded FROM search_texts WHERE number > $1 AND number <= $2 ORDER BY number LIMIT 1";
        tx.each(one, &[before.into(), last.into()], |row| {
            let pieces: BTreeSet<String> = row.text(0)?.lines().flat_map(cut).map(|piece| piece.letters).collect();
            pieces.into_iter().for_each(|piece| *counts.entry(piece).or_default() += 1);
            Ok::<(), store::Error>(())
        })?;
    }
    let counts: Vec<(String, i64)> = counts.into_iter().collect();
    let (many, few) = counts.as_chunks::<ROWS>();
    for rows in many.iter().map(<[_; ROWS]>::as_slice).chain(few.chunks(1)) {
        let places: Vec<String> = (0..rows.len()).map(|n| format!("(${}, ${})", 2 * n + 1, 2 * n + 2)).collect();
        let sql = format!(
            "INSERT INTO search_pieces (piece, texts) VALUES {}
             ON CONFLICT (piece) DO UPDATE SET texts = search_pieces.texts + excluded.texts",
            places.join(", ")
        );
        let values: Vec<Value> = rows.iter().flat_map(|(piece, texts)| [piece.into(), (*texts).into()]).collect();
        tx.execute(&sql, &values)?;
    }
    Ok(())
}

/// Returns each trigram once.
fn cut(folded: &str) -> Vec<Piece> {
    let letters: Vec<char> = folded.chars().collect();
    let mut word = 0;
    let mut seen = BTreeSet::new();
    let mut pieces = Vec::new();
    for (start, three) in letters.windows(3).enumerate() {
        word += usize::from(!three[0].is_alphanumeric());
        if seen.insert(three) {
            // A trigram that is not in the sample is rarer than one that occurs in it once.
            pieces.push(Piece { letters: three.iter().collect(), start, word, texts: ONE_OF.unsigned_abs() / 2 });
        }
    }
    pieces
}

/// Chooses the rarest trigram, then others as long as reading their lists is faster than comparing the texts that they
/// exclude. `all` is the total number of texts. Also returns how many texts may remain.
fn choose(mut left: Vec<Piece>, all: u64) -> (Vec<Piece>, u64) {
    let all = all.max(1);
    let mut chosen: Vec<Piece> = Vec::new();
    let mut found = all;
    loop {
        let costs = left.iter().enumerate().map(|(place, piece)| {
            let then = found.saturating_mul(share(piece, &chosen, all)) / all;
            (then + piece.texts / READ, then, place)
        });
        match costs.min() {
            Some((cost, then, place)) if cost < found || chosen.is_empty() => {
                chosen.push(left.swap_remove(place));
                found = then;
            }
            _ => return (chosen, found),
        }
    }
}

/// Estimates how many of `all` texts contain `piece`, given the chosen ones. Trigrams of one word correlate ("fot" and
/// "ogr" in all photographers), those that share letters even more.
fn share(piece: &Piece, chosen: &[Piece], all: u64) -> u64 {
    let texts = piece.texts.min(all);
    let root = |texts: u64| texts.saturating_mul(all).isqrt();
    match chosen.iter().filter(|other| other.start.abs_diff(piece.start) < 3).count() {
        0 if chosen.iter().all(|other| other.word != piece.word) => texts,
        0 => root(texts),
        1 => root(root(texts)),
        _ => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(folded: &str, counts: &[u64]) -> Vec<String> {
        let pieces = cut(folded).into_iter().zip(counts).map(|(piece, texts)| Piece { texts: *texts, ..piece });
        choose(pieces.collect(), 1_000_000).0.into_iter().map(|piece| piece.letters).collect()
    }

    #[test]
    fn takes_a_few_rare_pieces() {
        // One that is rare enough suffices.
        let counts = [24_359, 16_408, 26_215, 26_168, 33_039, 98_790, 64, 3_269, 72_816, 72_816, 116_783];
        assert_eq!(chosen("brouwershaven", &counts), ["rsh"]);
        // The rarest are all of one word and correlate: one of the other word is better.
        let counts = [9_834, 9_834, 25_847, 9_834, 26_140, 9_834, 10_672, 27_744, 29_769, 19_344, 16_463, 24_249];
        assert_eq!(chosen("fotografie mol", &counts), ["fot", " mo"]);
        // All trigrams of a short word share letters.
        assert_eq!(chosen("10777", &[3_999, 3_000, 3_700]), ["077", "777"]);
        assert_eq!(chosen("van", &[380_000]), ["van"]);
        assert_eq!(chosen("van", &[1_000_000]), ["van"]);
    }

    #[test]
    fn compares_the_texts_of_an_account_that_has_fewer_than_the_index_would_read() {
        let asked = |texts, own| asked(texts, own).is_faster();
        assert!(asked(64, 0) && asked(64, 300_000));
        assert!(asked(9_000, 300_000) && !asked(9_000, 1_000));
        assert!(!asked(250_000, 300_000));
    }

    #[test]
    fn compares_texts_in_turn_if_enough_match_soon() {
        let any = |texts, own| asked(texts, own).is_faster_for_any(10_001);
        assert!(any(50_000, 900_000) && any(100_000, 900_000) && !any(500_000, 900_000));
        // Most of what the index has is of others.
        assert!(!any(150_000, 30_000) && any(64, 10));
        let first = |texts, own| asked(texts, own).is_faster_for_first(25);
        assert!(first(500, 900_000) && !first(9_000, 900_000) && !first(500_000, 900_000));
    }

    /// A trigram that is in so many of a million texts, for an account with so many of them.
    fn asked(texts: u64, own: u64) -> Asked {
        let piece = Piece { letters: "abc".to_string(), start: 0, word: 0, texts };
        let (chosen, found) = choose(vec![piece], 1_000_000);
        let (compared, read) = cost(&chosen, found);
        let sizes = Sizes { own, all: 1_000_000 };
        Asked { pieces: Vec::new(), found, compared, read, most: texts, sizes }
    }

    #[test]
    fn cuts_each_piece_once() {
        assert_eq!(cut("aaaa").len(), 1);
        assert_eq!(cut("ab").len(), 0);
        let words: Vec<usize> = cut("ster ab").into_iter().map(|piece| piece.word).collect();
        assert_eq!(words, [0, 0, 0, 0, 1]);
    }
}
