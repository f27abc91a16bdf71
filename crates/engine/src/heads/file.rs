//! Heads as a text that is kept elsewhere: a line per account.

use super::head::Head;
use crate::clock::Moment;
use crate::contents::hex;
use crate::secrets::key_file::unhex;

/// Returns the text of a file.
pub fn written(heads: &[Head], now: Moment) -> String {
    let mut text = format!(
        "# The ends of the logs of Kantoor at {now}: account, number of lines, hash, signature.\n\
         # To check that the logs still continue them: kantoor verify --against FILE\n"
    );
    for Head { uid, seq, hash, signature } in heads {
        text.push_str(&format!("{uid} {seq} {} {}\n", hex(hash), hex(signature)));
    }
    text
}

/// Reads a file, or several in one; returns the first line that is none.
pub fn read(text: &str) -> Result<Vec<Head>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| head(line).ok_or_else(|| line.to_string())).collect()
}

fn head(line: &str) -> Option<Head> {
    let mut parts = line.split_whitespace();
    let head = Head {
        uid: parts.next()?.to_string(),
        seq: parts.next()?.parse().ok()?,
        hash: unhex(parts.next()?)?,
        signature: unhex(parts.next()?)?,
    };
    parts.next().is_none().then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let heads = vec![
            Head { uid: "a".to_string(), seq: 7, hash: vec![1, 2], signature: vec![3] },
            Head { uid: "b".to_string(), seq: 0, hash: vec![9], signature: vec![4] },
        ];
        let text = written(&heads, Moment(0));
        assert_eq!(read(&text).unwrap(), heads);
        for wrong in ["a", "a 1 zz 00", "a x 00 00", "a 1 00 00 more"] {
            assert_eq!(read(&format!("{text}{wrong}\n")).unwrap_err(), wrong);
        }
    }
}
