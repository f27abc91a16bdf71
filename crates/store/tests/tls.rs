//! TLS to PostgreSQL, with the temporary server of `scripts/with-postgres`.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::io::{Read as _, Write as _};

use store::{Database, Error, Options, Store};

/// Returns the server's `host:port` and the file with its root certificate.
fn server() -> Option<(String, String)> {
    let Ok(root) = std::env::var("KANTOOR_TEST_POSTGRES_ROOT") else {
        eprintln!("skipped: this needs the server of scripts/with-postgres, and openssl");
        return None;
    };
    let url = std::env::var("KANTOOR_TEST_POSTGRES").unwrap();
    let place = url.split_once('@').unwrap().1.split_once('/').unwrap().0;
    Some((place.to_string(), root))
}

fn open(url: &str) -> Result<Store, Error> {
    Store::open(&Options { writers: 1, ..Options::new(Database::Postgres(url.to_string())) })
}

/// Whether PostgreSQL reports our connections as encrypted: for reading and for writing.
fn encrypted(url: &str) -> (bool, bool) {
    let store = open(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    let sql = "SELECT CASE WHEN ssl THEN 1 ELSE 0 END::BIGINT FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let read = store.read_now(|tx| tx.int(sql, &[])).unwrap();
    let written = store.write_now(0, |tx| tx.int(sql, &[])).unwrap();
    (read == 1, written == 1)
}

fn refused(url: &str) -> String {
    match open(url) {
        Ok(_) => panic!("{url}: was not refused"),
        Err(error) => error.to_string(),
    }
}

fn execute(place: &str, sql: &str) {
    let mut client =
        postgres::Client::connect(&format!("postgres://kantoor@{place}/postgres"), postgres::NoTls).unwrap();
    client.batch_execute(sql).unwrap();
}

/// A file with the certificate of an unrelated authority.
fn another_root(folder: &std::path::Path) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let file = folder.join("other.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    file.to_str().unwrap().to_string()
}

#[test]
fn connections_are_encrypted_as_the_address_says() {
    let Some((place, root)) = server() else { return };
    let url = format!("postgres://kantoor@{place}/postgres");
    let port = place.split_once(':').unwrap().1;
    assert_eq!(encrypted(&url), (true, true), "prefer is the default");
    assert_eq!(encrypted(&format!("{url}?sslmode=disable")), (false, false));
    for options in [
        "sslmode=prefer".to_string(),
        "sslmode=require".to_string(),
        format!("sslmode=require&sslrootcert={root}"),
        format!("sslmode=verify-ca&sslrootcert={root}"),
        format!("sslmode=verify-full&sslrootcert={root}"),
    ] {
        assert_eq!(encrypted(&format!("{url}?{options}")), (true, true), "{options}");
    }
    let words =
        format!("host=localhost port={port} user=kantoor dbname=postgres sslmode=verify-full sslrootcert={root}");
    assert_eq!(encrypted(&words), (true, true), "by name, in the other form");
}

#[test]
fn rejects_another_server() {
    let Some((place, root)) = server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let other = another_root(folder.path());
    let url = format!("postgres://kantoor@{place}/postgres");
    for options in [
        format!("sslmode=verify-full&sslrootcert={other}"),
        format!("sslmode=verify-ca&sslrootcert={other}"),
        format!("sslmode=require&sslrootcert={other}"),
    ] {
        let said = refused(&format!("{url}?{options}"));
        let expected = "the database is not available: PostgreSQL's certificate is not trusted: specify the certificate \
                        of its authority with sslrootcert=FILE in the database URL";
        assert_eq!(said, expected, "{options}");
    }
    // The authorities of the machine did not sign it either; a minimal machine may have none.
    let said = refused(&format!("{url}?sslmode=verify-full"));
    assert!(said.contains("is not trusted") || said.contains("no CA certificates"), "{said}");

    let port = place.split_once(':').unwrap().1;
    let named = format!("postgres://kantoor@db.example:{port}/postgres?hostaddr=127.0.0.1&sslrootcert={root}");
    let said = refused(&format!("{named}&sslmode=verify-full"));
    assert!(
        said.contains("PostgreSQL's certificate is not valid for db.example: it is for localhost, 127.0.0.1"),
        "{said}"
    );
    assert_eq!(encrypted(&format!("{named}&sslmode=verify-ca")), (true, true), "signed is enough here");
}

#[test]
fn rejects_a_server_without_tls_if_required() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 8];
            let _ = stream.read_exact(&mut asked);
            // TLS is not supported.
            let _ = stream.write_all(b"N");
        }
    });
    for mode in ["require", "verify-full"] {
        let said = refused(&format!("postgres://kantoor@127.0.0.1:{port}/postgres?sslmode={mode}"));
        let expected =
            format!("the database is not available: PostgreSQL does not support TLS, but sslmode={mode} requires it");
        // A machine without authorities cannot verify anything.
        assert!(said == expected || said.contains("no CA certificates"), "{said}");
    }
}

#[test]
fn a_password_is_bound_to_the_connection() {
    let Some((place, root)) = server() else { return };
    execute(&place, "DROP ROLE IF EXISTS with_password; CREATE ROLE with_password LOGIN PASSWORD 'a b'");
    let url = format!("postgres://with_password:a%20b@{place}/postgres");
    let verified = format!("sslmode=verify-full&sslrootcert={root}");
    assert_eq!(encrypted(&format!("{url}?{verified}&channel_binding=require")), (true, true));
    assert_eq!(encrypted(&format!("{url}?sslmode=require")), (true, true));
    assert_eq!(encrypted(&format!("{url}?channel_binding=disable")), (true, true));
    assert_eq!(encrypted(&format!("{url}?sslmode=disable")), (false, false));
    assert!(refused(&format!("{url}?sslmode=disable&channel_binding=require")).contains("channel binding"));
    let wrong = format!("postgres://with_password:wrong@{place}/postgres");
    assert!(refused(&wrong).contains("password authentication failed"), "{}", refused(&wrong));
}

#[test]
fn prefer_accepts_a_server_without_tls() {
    let Some((place, _)) = server() else { return };
    execute(&place, "DROP ROLE IF EXISTS without_tls; CREATE ROLE without_tls LOGIN");
    let url = format!("postgres://without_tls@{place}/postgres");
    assert_eq!(encrypted(&url), (false, false));
    assert!(refused(&format!("{url}?sslmode=require")).contains("pg_hba.conf"));
}
