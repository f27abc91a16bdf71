//! Rules about the files of the console: what they must not contain, and how large they may be.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{assets, client, open};
use crate::people::owner;
use crate::support::{Db, Server};

/// Ways to turn text into HTML or code, and addresses of others.
const FORBIDDEN: [&str; 12] = [
    "innerhtml",
    "outerhtml",
    "insertadjacenthtml",
    "document.write",
    "dangerouslysetinnerhtml",
    "setattribute(\"style\"",
    "style: \"",
    "eval(",
    "new function",
    "http://",
    "https://",
    "srcdoc",
];

/// Uses of these that do no harm: the name of a format, a hint in a field, and the style of a number.
const ALLOWED: [&str; 3] = ["http://www.w3.org/", "https://…", "style: \"currency\""];

fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("console")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["node_modules", "types"].contains(&name.as_str()) {
                folders.push(path);
            } else if ["js", "css", "json"].iter().any(|ending| path.extension().is_some_and(|own| own == *ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn packed(bytes: &[u8]) -> usize {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap().len()
}

#[test]
fn the_console_turns_no_text_into_html_and_calls_nobody() {
    let mut wrong = Vec::new();
    let is_own =
        |path: &Path| path.extension().is_some_and(|own| own == "js") && !path.to_string_lossy().contains("/vendor/");
    for path in files().iter().filter(|path| is_own(path)) {
        for (number, line) in (1..).zip(std::fs::read_to_string(path).unwrap().lines()) {
            let mut line = line.to_lowercase();
            ALLOWED.iter().for_each(|allowed| line = line.replace(allowed, ""));
            if let Some(word) = FORBIDDEN.iter().find(|word| line.contains(*word)) {
                wrong.push(format!("{}:{number}: {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Comments and indentation are left out of what is served without reading the language: nothing else may look like a
/// comment, and no text has several lines.
#[test]
fn only_comments_look_like_comments() {
    let is_own = |path: &&PathBuf| {
        path.extension().is_some_and(|own| own == "js") && !path.to_string_lossy().contains("/vendor/")
    };
    let mut wrong = Vec::new();
    for path in files().iter().filter(is_own) {
        let text = std::fs::read_to_string(path).unwrap();
        let (mut in_comment, mut in_template) = (false, false);
        for (number, line) in (1..).zip(text.lines()) {
            let begins = line.find("/**");
            let quoted = |quote| line[..begins.unwrap_or(0)].matches(quote).count() % 2 == 1;
            if in_template || !in_comment && (quoted('"') || quoted('`')) {
                wrong.push(format!("{}:{number}", path.display()));
            }
            if !in_comment && begins.is_none() && !line.trim_start().starts_with("//") {
                in_template ^= line.matches('`').count() % 2 == 1;
            }
            in_comment = (in_comment || begins.is_some()) && line.rfind("*/") <= line.rfind("/**");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A path that is written out in a module is one of the API. Parts in `${…}` stand for an id.
#[test]
fn every_path_of_the_api_exists() {
    kantoor::registry::install();
    let mut paths = BTreeSet::new();
    for path in files().iter().filter(|path| path.extension().is_some_and(|own| own == "js")) {
        let text = std::fs::read_to_string(path).unwrap();
        for mark in ["\"/v1/", "`/v1/", "console/v1/"] {
            for rest in text.split(mark).skip(1) {
                let mut rest = rest.split(['"', '`', '?', ' ', ')']).next().unwrap_or_default().to_string();
                while let Some((before, after)) = rest.clone().split_once("${") {
                    let Some((_, after)) = after.split_once('}') else { break };
                    rest = format!("{before}7{after}");
                }
                paths.insert(rest.trim_end_matches('/').to_string());
            }
        }
    }
    let routes = kantoor::registry::REGISTRY.resources.iter().flat_map(|resource| &resource.routes);
    let routes: Vec<Vec<&str>> = routes.map(|route| route.path.split('/').skip(2).collect()).collect();
    // Some of these are the start of a path.
    let begins = |route: &[&str], path: &str| {
        let same = |(own, part): (&&str, &str)| *own == part || own.starts_with('{') || part == "7";
        path.split('/').count() <= route.len() && route.iter().zip(path.split('/')).all(same)
    };
    let known = |path: &&String| path.is_empty() || routes.iter().any(|route| begins(route, path));
    let wrong: Vec<&String> = paths.iter().filter(|path| !known(path)).collect();
    assert!(paths.len() > 40 && wrong.is_empty(), "{wrong:#?}");
}

/// The console says of a file that it is too large before it is sent.
#[test]
fn the_console_knows_how_large_a_file_may_be() {
    let api = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("console/api.js")).unwrap();
    let most = format!("MAX_FILE = {} * 1024 * 1024;", engine::contents::MAX_SIZE / 1024 / 1024);
    assert!(api.contains(&most), "{most}");
}

/// The log and the history name every event in the reader's language.
#[test]
fn every_event_has_words() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let events = std::fs::read_to_string(folder.join("docs/events.md")).unwrap();
    let named = events.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name);
    let named: BTreeSet<&str> = named.filter(|name| name.split('.').count() == 2 && !name.contains('/')).collect();
    assert!(named.len() > 100, "{named:?}");
    for language in ["en", "nl"] {
        let words = std::fs::read_to_string(folder.join(format!("console/words/{language}.screens.json"))).unwrap();
        let missing = named.iter().filter(|name| {
            let verb = name.split('.').next_back().unwrap_or_default();
            ![**name, verb].iter().any(|one| words.contains(&format!("\"event.{one}\":")))
        });
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new(), "{language}");
    }
}

#[test]
fn no_file_of_the_console_has_more_than_600_lines() {
    for path in files().iter().filter(|path| path.extension().is_some_and(|own| own == "js")) {
        let lines = std::fs::read_to_string(path).unwrap().lines().count();
        assert!(lines <= 600, "{}: {lines}", path.display());
    }
}

/// What a cold browser loads for a list, and everything together.
#[test]
fn the_console_stays_small() {
    let server = Server::start(Db::sqlite());
    let client = client(&server);
    let browser = owner(&server, &client, "olga@a.example");
    let page = open(&browser, "/invoices").expect(200);
    let folder = assets(&page);
    let (plain, gzipped) = (page.text.len(), packed(page.text.as_bytes()));
    assert!(plain < 60_000 && gzipped < 30_000, "the page has {plain} bytes, {gzipped} gzipped");
    let named: BTreeSet<&str> = page
        .text
        .split(&format!("\"{}/", folder.replace('/', "&#x2f;")))
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let named: BTreeSet<String> = named.into_iter().map(|file| file.replace("&#x2f;", "/")).collect();
    let modules = named.iter().filter(|file| file.ends_with(".js")).count();
    assert_eq!(modules, 1, "{named:?}");
    let size = |file: &str| packed(&client.get(&format!("{folder}/{file}")).expect(200).bytes);
    let counted = named
        .iter()
        .filter(|file| [".js", ".css"].iter().any(|ending| file.ends_with(ending)) || file.starts_with("words/"));
    let first: usize = counted.map(|file| size(file)).sum();
    assert!((20_000..60_000).contains(&first), "the first screen has {first} bytes gzipped");
    // The modules of the folder itself are served in two files, small screens in a third one.
    let folder_of = |path: &PathBuf| path.parent().and_then(|own| own.file_name()).unwrap_or_default().to_os_string();
    let apart =
        files().into_iter().filter(|path| folder_of(path) != "vendor" && !path.to_string_lossy().contains("package"));
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let served: BTreeSet<String> = apart
        .filter(|path| name(path) != "tsconfig.json")
        .map(|path| match folder_of(&path).to_string_lossy().as_ref() {
            "console" if name(&path).ends_with(".js") => "rest.js".to_string(),
            "console" => name(&path),
            folder => format!("{folder}/{}", name(&path)),
        })
        .filter(|file| client.get(&format!("{folder}/{file}")).status == 200)
        .chain(["app.js".to_string(), "small.js".to_string()])
        .collect();
    assert!(served.len() > 20, "{served:?}");
    let all: usize = served.iter().map(|file| size(file)).sum();
    assert!(all < 256_000, "the console has {all} bytes gzipped");
}
