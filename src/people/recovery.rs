//! Recovery codes: each signs a person in once without their second factor. Only their hashes are stored; with 80 random
//! bits, a code cannot be found from its hash.

use engine::accounts;
use engine::error::Result;
use engine::random;
use store::Tx;

/// Number of codes that a person gets.
pub const COUNT: usize = 10;
/// Letters of a code, without the dashes.
pub const LENGTH: usize = 16;
/// Letters and digits that are not mistaken for each other (Crockford's base 32).
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Generates the codes of a person, as they are shown once.
pub fn generate() -> Result<Vec<String>> {
    let bytes = random::bytes::<{ COUNT * LENGTH }>()?;
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
    let part = |part: &[u8]| part.iter().map(letter).collect::<String>();
    Ok(bytes.chunks(LENGTH).map(|code| code.chunks(4).map(part).collect::<Vec<_>>().join("-")).collect())
}

/// Stores the codes of a person, in place of earlier ones.
pub fn replace(tx: &mut Tx, person: &str, codes: &[String]) -> Result<()> {
    remove_all(tx, person)?;
    for code in codes {
        let sql = "INSERT INTO recovery_codes (hash, person_id) VALUES ($1, $2)";
        tx.execute(sql, &[hash(code).as_slice().into(), person.into()])?;
    }
    Ok(())
}

/// Uses a code; returns whether it was one of the person's.
pub fn use_code(tx: &mut Tx, person: &str, code: &str) -> Result<bool> {
    let sql = "DELETE FROM recovery_codes WHERE hash = $1 AND person_id = $2";
    Ok(tx.execute(sql, &[hash(code).as_slice().into(), person.into()])? > 0)
}

/// Returns how many codes a person has left.
pub fn left(tx: &mut Tx, person: &str) -> Result<i64> {
    Ok(tx.int("SELECT count(*) FROM recovery_codes WHERE person_id = $1", &[person.into()])?)
}

/// Removes the codes of a person.
pub fn remove_all(tx: &mut Tx, person: &str) -> Result<()> {
    tx.execute("DELETE FROM recovery_codes WHERE person_id = $1", &[person.into()])?;
    Ok(())
}

/// Codes are typed from paper: case, dashes and spaces do not matter, nor do letters that look like a digit.
fn hash(code: &str) -> [u8; 32] {
    let letters =
        code.chars().filter(|letter| letter.is_ascii_alphanumeric()).map(|letter| match letter.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            letter => letter,
        });
    accounts::hash(&letters.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_typed_in_many_ways() {
        let codes = generate().unwrap();
        assert_eq!((codes.len(), codes[0].len()), (COUNT, LENGTH + 3));
        assert!(codes.iter().all(|code| codes.iter().filter(|other| *other == code).count() == 1), "{codes:?}");
        let hashed = hash("0A1B-CDEF-GHJK-MNPQ");
        assert_eq!(hash("oaib cdef ghjk mnpq"), hashed);
        assert_eq!(hash("0AlBCDEFGHJKMNPQ "), hashed);
        assert_ne!(hash("0A1B-CDEF-GHJK-MNPR"), hashed);
    }
}
