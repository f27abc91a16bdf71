use std::io::Cursor;

use age::secrecy::ExposeSecret as _;

use super::*;

fn packed(recipients: &Recipients) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), recipients).unwrap();
    writer.add("a.json", 2, 1_700_000_000, &b"{}"[..]).unwrap();
    let long: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    writer.add("files/x/y", long.len() as u64, 0, &long[..]).unwrap();
    writer.finish().unwrap()
}

fn unpacked(bytes: &[u8], identities: Option<&Identities>) -> Result<Vec<(String, u64)>, Error> {
    let mut found = Vec::new();
    Reader::open(Cursor::new(bytes), identities)?.each(|name, size, content| {
        let read = io::copy(content, &mut io::sink())?;
        assert_eq!(read, size);
        found.push((name.to_string(), size));
        Ok::<_, Error>(())
    })?;
    Ok(found)
}

fn pair() -> (Recipients, Identities, tempfile::TempDir) {
    let secret = age::x25519::Identity::generate();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.txt");
    std::fs::write(&path, format!("# a comment\n{}\n", secret.to_string().expose_secret())).unwrap();
    let recipients = Recipients::parse([secret.to_public().to_string().as_str()]).unwrap();
    (recipients, Identities::read(&path).unwrap(), folder)
}

#[test]
fn files_come_back_as_they_were() {
    let expected = [("a.json".to_string(), 2), ("files/x/y".to_string(), 3_000_000)];
    assert_eq!(unpacked(&packed(&Recipients::default()), None).unwrap(), expected);
    let (recipients, identities, _folder) = pair();
    let encrypted = packed(&recipients);
    assert_eq!(unpacked(&encrypted, Some(&identities)).unwrap(), expected);
    assert!(matches!(unpacked(&encrypted, None), Err(Error::Encrypted)));
    let (_, others, _folder) = pair();
    assert!(matches!(unpacked(&encrypted, Some(&others)), Err(Error::WrongIdentity)));
}

#[test]
fn rejects_what_is_truncated_altered_or_foreign() {
    let (recipients, identities, _folder) = pair();
    for (whole, identities) in [(packed(&Recipients::default()), None), (packed(&recipients), Some(&identities))] {
        for length in [whole.len() - 1, whole.len() / 2, whole.len() / 7, 30] {
            let read = unpacked(&whole[..length], identities);
            assert!(matches!(read, Err(Error::Damaged(_))), "{length}: {read:?}");
        }
        for place in [whole.len() - 3, whole.len() / 2] {
            let mut altered = whole.clone();
            altered[place] ^= 0x10;
            let read = unpacked(&altered, identities);
            assert!(matches!(read, Err(Error::Damaged(_))), "{place}: {read:?}");
        }
    }
    for text in ["", "hello", "SQLite format 3\0", "PK\u{3}\u{4}"] {
        assert!(matches!(unpacked(text.as_bytes(), None), Err(Error::Foreign)), "{text}");
    }
}

#[test]
fn rejects_names_outside_the_archive_and_contents_that_are_too_short() {
    for name in ["../x", "/x", "a/../b", "a//b", ""] {
        assert!(!is_plain(name), "{name}");
    }
    assert!(is_plain("files/a/b"));
    let mut writer = Writer::new(Vec::new(), &Recipients::default()).unwrap();
    assert!(writer.add("a", 3, 0, &b"ab"[..]).is_err());
    let secret = Recipients::parse(["age-secret-key-1hush"]).err().unwrap();
    assert!(secret.contains("age identity") && !secret.contains("hush"), "{secret}");
    assert!(Recipients::parse(["age1x"]).err().unwrap().contains("not an age recipient"));
}

/// An archive whose first header says that a name or other headers of `size` bytes follow.
fn with_large_header(kind: tar::EntryType, size: u64, recipients: &Recipients) -> Vec<u8> {
    let output = BufWriter::new(Vec::new());
    let output = match recipients.encryptor().unwrap() {
        Some(encryptor) => Output::Encrypted(Box::new(encryptor.wrap_output(output).unwrap())),
        None => Output::Plain(output),
    };
    let mut tar = tar::Builder::new(zstd::Encoder::new(output, 1).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_path("x").unwrap();
    header.set_size(size);
    header.set_entry_type(kind);
    header.set_cksum();
    tar.append(&header, io::repeat(b'a').take(size)).unwrap();
    Writer { tar }.finish().unwrap()
}

/// Counts what is read.
struct Counted<R>(R, std::rc::Rc<std::cell::Cell<u64>>);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.read(buffer)?;
        self.1.set(self.1.get() + length as u64);
        Ok(length)
    }
}

#[test]
fn a_name_of_any_size_is_refused_before_it_is_read() {
    let (recipients, identities, _folder) = pair();
    let kinds = [
        tar::EntryType::GNULongName,
        tar::EntryType::GNULongLink,
        tar::EntryType::XHeader,
        tar::EntryType::XGlobalHeader,
        tar::EntryType::GNUSparse,
    ];
    for kind in kinds {
        for (recipients, identities) in [(&Recipients::default(), None), (&recipients, Some(&identities))] {
            let archive = with_large_header(kind, 64 * 1024 * 1024, recipients);
            assert!(archive.len() < 64 * 1024, "{}", archive.len());
            let read = std::rc::Rc::<std::cell::Cell<u64>>::default();
            let mut reader = Reader::open(Cursor::new(&archive), identities).unwrap();
            // What is decompressed is what could be kept in memory.
            let plain = reader.tar.into_inner();
            reader.tar = tar::Archive::new(Box::new(Counted(plain, read.clone())));
            let refused = reader.each(|_, _, _| Ok::<_, Error>(()));
            assert!(matches!(refused, Err(Error::Foreign)), "{kind:?}: {refused:?}");
            assert!(read.get() <= 1024, "{kind:?}: {} bytes", read.get());
        }
    }
    let mut writer = Writer::new(Vec::new(), &Recipients::default()).unwrap();
    assert!(writer.add(&"n".repeat(101), 0, 0, io::empty()).is_err(), "nothing is written that cannot be read");
}

#[test]
fn an_identity_in_place_of_its_file_is_not_printed() {
    for text in ["AGE-SECRET-KEY-1HUSH", "age-secret-key-1hush", "# a comment\nAGE-SECRET-KEY-PQ-1HUSH"] {
        let why = Identities::read(std::path::Path::new(text)).err().unwrap();
        assert!(why.contains("name the file") && !why.to_lowercase().contains("hush"), "{why}");
    }
    // The name of a file may be like that.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("age-secret-key-1.txt");
    std::fs::write(&path, age::x25519::Identity::generate().to_string().expose_secret()).unwrap();
    assert!(Identities::read(&path).is_ok());
    assert!(Identities::read(&folder.path().join("missing.txt")).err().unwrap().contains("missing.txt"));
}

#[test]
fn the_header_of_an_encrypted_archive_is_short() {
    let (_, identities, _folder) = pair();
    let refused = |header: String| match Reader::open(Cursor::new(header), Some(&identities)) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was opened"),
    };
    for header in [
        format!("age-encryption.org/v1\n{}--- x\n", "-> X a\n\n".repeat(50_000)),
        format!("age-encryption.org/v1\n-> X25519 {}", "A".repeat(500_000)),
        format!("age-encryption.org/v1\n{}--- x\n", "-> X a\n\n".repeat(65)),
    ] {
        let said = refused(header);
        assert!(said.contains("its age header is too long"), "{said}");
    }
    assert!(!refused("age-encryption.org/v1\n-> X a\n\n--- x\n".to_string()).contains("too long"));
}
