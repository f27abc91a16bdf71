//! Mail as files.

use std::fs;

use mail::{Failure, Mail, Route, Sender};

use crate::{FROM, TO, mail, message};

#[test]
fn a_mail_is_one_file_named_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/outbox");
    let sender = Sender::new(Route::Folder(path.clone())).unwrap();
    assert_eq!(sender.check(), Ok(()));
    let receipt = sender.deliver(FROM, TO, &message()).unwrap();
    assert_eq!(receipt.response, "0190-7c.eml");
    sender.deliver(FROM, "other@b.example", &message()).unwrap();
    let other = Mail { message_id: "a".repeat(128), ..mail() }.to_bytes().unwrap();
    sender.deliver(FROM, TO, &other).unwrap();
    let mut names: Vec<String> =
        fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["0190-7c.eml".to_owned(), format!("{}.eml", "a".repeat(128))]);
    assert_eq!(fs::read(path.join("0190-7c.eml")).unwrap(), message());
}

#[cfg(unix)]
#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outbox");
    Sender::new(Route::Folder(path.clone())).unwrap().deliver(FROM, TO, &message()).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path.clone()), mode(path.join("0190-7c.eml"))), (0o700, 0o600));
}

#[test]
fn a_write_error_is_temporary() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let sender = Sender::new(Route::Folder(file)).unwrap();
    assert!(matches!(sender.deliver(FROM, TO, &message()), Err(Failure::Later(_))));
    assert!(sender.check().is_err());
    // An address is validated as for a server, so that a test with files finds the same errors.
    assert!(matches!(sender.deliver(FROM, "nobody", &message()), Err(Failure::Never(_))));
    assert!(matches!(sender.deliver(FROM, TO, b"A: b\r\n\r\n"), Err(Failure::Never(_))));
}
