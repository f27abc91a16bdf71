//! Backups in an S3-compatible store, of which a small one runs in this process.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::empty_like;
use super::scheduled::{id, turn};
use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Db, Server};

on_both![
    an_archive_goes_to_a_store_and_back,
    scheduled_backups_go_to_a_store,
    a_missing_bucket_is_unavailable_and_said
];

/// The objects by path, and the parts of uploads that are not complete.
#[derive(Default)]
struct Objects {
    all: BTreeMap<String, Vec<u8>>,
    parts: HashMap<String, BTreeMap<u32, Vec<u8>>>,
    uploads: u32,
    /// How many parts are accepted before the store fails.
    fails_after: Option<u32>,
}

impl Objects {
    fn listed(&self, bucket: &str, prefix: &str) -> String {
        let start = format!("{bucket}/{prefix}");
        let found = self.all.iter().filter(|(key, _)| key.starts_with(&start));
        let when = "<LastModified>2026-11-16T10:00:00.000Z</LastModified><ETag>x</ETag>";
        let one = |(key, content): (&String, &Vec<u8>)| {
            let key = &key[bucket.len() + 1..];
            format!("<Contents><Key>{key}</Key>{when}<Size>{}</Size></Contents>", content.len())
        };
        let listed: String = found.map(one).collect();
        format!("<ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>")
    }
}

#[derive(Clone, Default)]
struct Store(Arc<Mutex<Objects>>);

impl Store {
    fn start() -> (Store, SocketAddr) {
        let store = Store::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = store.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let own = own.clone();
                std::thread::spawn(move || own.serve(stream.unwrap()));
            }
        });
        (store, address)
    }

    fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().all.keys().cloned().collect()
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut writer = stream;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let mut parts = line.split(' ');
            let (method, target) = (parts.next().unwrap().to_string(), parts.next().unwrap().to_string());
            let (mut length, mut signed) = (0, false);
            loop {
                let mut header = String::new();
                reader.read_line(&mut header).unwrap();
                if header.trim().is_empty() {
                    break;
                }
                let (name, value) = header.split_once(':').unwrap();
                match name.to_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap(),
                    "authorization" => signed = value.contains("AKIDEXAMPLE"),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let (status, headers, text) = match signed {
                true => self.answer(&method, &target, body),
                false => (403, String::new(), Vec::new()),
            };
            let size = if headers.contains("content-length") {
                String::new()
            } else {
                format!("content-length: {}\r\n", text.len())
            };
            write!(writer, "HTTP/1.1 {status} X\r\n{headers}{size}\r\n").unwrap();
            if method != "HEAD" {
                writer.write_all(&text).unwrap();
            }
        }
    }

    fn answer(&self, method: &str, target: &str, body: Vec<u8>) -> (u16, String, Vec<u8>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query: HashMap<String, String> = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(a, b)| (a.to_string(), b.replace("%2F", "/")))
            .collect();
        let mut objects = self.0.lock().unwrap();
        let path = path.trim_start_matches('/').to_string();
        let none = |status| (status, String::new(), Vec::new());
        if path.starts_with("missing/") {
            let text = "<Error><Code>NoSuchBucket</Code><Message>The bucket does not exist</Message></Error>";
            return (404, String::new(), text.into());
        }
        let tagged = || "etag: \"x\"\r\nlast-modified: Mon, 16 Nov 2026 10:00:00 GMT\r\n".to_string();
        match (method, query.get("uploadId")) {
            ("POST", None) if query.contains_key("delete") => {
                let text = String::from_utf8(body).unwrap();
                let keys = text.split("<Key>").skip(1).map(|rest| rest.split("</Key>").next().unwrap());
                let bucket = path.trim_end_matches('/');
                keys.for_each(|key| drop(objects.all.remove(&format!("{bucket}/{key}"))));
                (200, String::new(), b"<DeleteResult></DeleteResult>".to_vec())
            }
            ("POST", None) if query.contains_key("uploads") => {
                objects.uploads += 1;
                let id = format!("u{}", objects.uploads);
                objects.parts.insert(id.clone(), BTreeMap::new());
                (
                    200,
                    String::new(),
                    format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>")
                        .into_bytes(),
                )
            }
            ("PUT", Some(id)) => {
                if let Some(left) = &mut objects.fails_after {
                    if *left == 0 {
                        return none(403);
                    }
                    *left -= 1;
                }
                objects.parts.get_mut(id).unwrap().insert(query["partNumber"].parse().unwrap(), body);
                (200, tagged(), Vec::new())
            }
            ("POST", Some(id)) => {
                let parts = objects.parts.remove(id).unwrap();
                objects.all.insert(path, parts.into_values().flatten().collect());
                (
                    200,
                    String::new(),
                    b"<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>".to_vec(),
                )
            }
            ("DELETE", Some(id)) => {
                objects.parts.remove(id);
                none(204)
            }
            ("PUT", None) => {
                objects.all.insert(path, body);
                (200, tagged(), Vec::new())
            }
            ("DELETE", None) => {
                objects.all.remove(&path);
                none(204)
            }
            ("GET", None) if query.contains_key("list-type") => {
                let prefix = query.get("prefix").map_or("", String::as_str);
                (200, String::new(), objects.listed(path.trim_end_matches('/'), prefix).into_bytes())
            }
            ("GET" | "HEAD", None) => match objects.all.get(&path) {
                Some(content) => (200, format!("{}content-length: {}\r\n", tagged(), content.len()), content.clone()),
                None => none(404),
            },
            _ => none(400),
        }
    }
}

fn an_archive_goes_to_a_store_and_back(db: Db) {
    let (store, address) = Store::start();
    let endpoint = format!("s3_endpoint=http://{address}");
    let s3 = ["--set", &endpoint, "--set", "s3_access_key=AKIDEXAMPLE", "--set", "s3_secret_key=hush"];
    let run = |db: &Db, arguments: &[&str]| kantoor(db, &[arguments, &s3[..]].concat());
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    binary.client.post("/v1/products", json!({"name": "Bolt"})).expect(201);
    // More than a part of an upload, and nothing that can be compressed.
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(20 * 1024 * 1024)
    .collect();
    binary.client.upload("noise.bin", &noise).expect(201);
    let url = "s3://bucket/of/mine/monday.kantoor";
    let done = run(&db, &["backup", "--with-key", url]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(store.keys(), ["bucket/of/mine/monday.kantoor"]);
    assert!(store.0.lock().unwrap().parts.is_empty() && store.0.lock().unwrap().uploads == 1);
    let left = std::fs::read_dir(&db.data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!left.into_iter().any(|name| name.contains("unfinished")));
    assert!(complained(&run(&db, &["backup", url])).contains("already exists"));
    for wrong in ["s3://", "s3://bucket", "s3://bucket/"] {
        assert!(complained(&run(&db, &["backup", wrong])).contains("expected s3://bucket/name"), "{wrong}");
    }
    // A name is refused in a store if it is refused on a disk.
    for name in ["x.zip", "X.ZIP", "kantoor.db", "x.tar.gz"] {
        let refused = complained(&run(&db, &["backup", &format!("s3://bucket/{name}")]));
        assert!(refused.contains("ends in .kantoor") && !refused.contains("folder"), "{refused}");
    }
    assert_eq!(store.keys().len(), 1);
    store.0.lock().unwrap().fails_after = Some(1);
    let failed = complained(&run(&db, &["backup", "s3://bucket/other"]));
    assert!(failed.contains("s3://bucket/other") && !failed.contains("hush"), "{failed}");
    assert_eq!(store.keys().len(), 1, "nothing is stored");
    store.0.lock().unwrap().fails_after = None;

    let checked = run(&db, &["restore", "--check", url]);
    assert!(checked.status.success(), "{checked:?}");
    let own = empty_like(&db);
    assert!(complained(&run(&own, &["restore", "s3://bucket/none"])).contains("no such object"));
    let done = run(&own, &["restore", url]);
    assert!(done.status.success(), "{done:?}");
    assert!(kantoor(&own, &["verify"]).status.success());
    // Contents of files are restored to a store as well.
    let own = empty_like(&db);
    let files = ["--set", "files=s3://files/here"];
    let done = run(&own, &[&["restore", url][..], &files[..]].concat());
    assert!(done.status.success(), "{done:?}");
    assert_eq!(store.keys().iter().filter(|key| key.starts_with("files/here/")).count(), 1);
    let verified = run(&own, &[&["verify"][..], &files[..]].concat());
    assert!(verified.status.success(), "{}", said(&verified));
}

fn scheduled_backups_go_to_a_store(db: Db) {
    let (store, address) = Store::start();
    let server = Server::with(db, |config| {
        config.backup_to = "s3://bucket/daily/".to_string();
        config.backup_keep = "2 days".to_string();
        config.backup_check = "7 days".to_string();
        config.s3_endpoint = format!("http://{address}");
        config.s3_access_key = "AKIDEXAMPLE".to_string();
        config.s3_secret_key = "hush".to_string();
    });
    server.recorded_client(None);
    let of_day = |id: &str, day: u8| format!("bucket/daily/kantoor-{id}2020010{day}T023000Z.tar.zst");
    let own = format!("{}-", id(&server));
    let kept = [of_day(&own, 2), of_day("0123abcd-", 1), of_day("", 1), "bucket/daily/notes".to_string()];
    for key in kept.iter().chain([&of_day(&own, 1)]) {
        store.0.lock().unwrap().all.insert(key.clone(), Vec::new());
    }
    assert!(turn(&server));
    assert_eq!(server.metric("kantoor_backup_failures_total"), 0);
    assert!(server.metric("kantoor_backup_proven_timestamp_seconds") > 0);
    let keys = store.keys();
    assert!(keys.len() == 5 && kept.iter().all(|key| keys.contains(key)), "{keys:?}");
}

fn a_missing_bucket_is_unavailable_and_said(db: Db) {
    let (store, address) = Store::start();
    let endpoint = format!("s3_endpoint=http://{address}");
    let s3 = ["--set", &endpoint, "--set", "s3_access_key=AKIDEXAMPLE", "--set", "s3_secret_key=hush"];
    let files = |place: &'static str| [&["--set", place], &s3[..]].concat();
    let binary = Binary::start(&db, "", &[&["--set", "workers=0"], &files("files=s3://missing/here")[..]].concat());
    // One that fits in a single request, and one that is sent in parts.
    for size in [10, 6 * 1024 * 1024] {
        let refused = binary.client.upload("a.bin", &vec![1; size]).expect(503);
        assert_eq!(refused.code(), "unavailable");
        assert!(!refused.header("retry-after").is_empty());
    }
    assert_eq!(binary.client.get("/v1/files").expect(200).json()["data"], json!([]));
    let sentence = "the bucket does not exist; create it, or correct its name in the settings";
    // Once for each upload, and once at the start, which does not wait for it.
    let is_said = || binary.said().matches(sentence).count() == 3;
    let was_said = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        is_said()
    });
    assert!(was_said, "{}", binary.said());
    let log = binary.said();
    assert!(log.contains("Files cannot be stored or read") && log.contains("s3://missing/here"), "{log}");
    let ill = said(&kantoor(&db, &[&["doctor"], &files("files=s3://missing/here")[..]].concat()));
    assert!(ill.contains(&format!("problem  files     s3://missing/here cannot be read: {sentence}.")), "{ill}");
    let well = said(&kantoor(&db, &[&["doctor"], &files("files=s3://bucket/here")[..]].concat()));
    assert!(well.contains("ok       files     s3://bucket/here can be read."), "{well}");
    assert!(store.keys().is_empty());
}
