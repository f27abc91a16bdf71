//! Tests with the samples of the built-in template.

use std::fs;
use std::path::Path;

use serde_json::Value;
use typst::layout::{Frame, FrameItem};

use super::*;

#[test]
fn every_sample_is_one_whole_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates");
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let labels: Value = serde_json::from_slice(&read("labels.json")).unwrap();
    let typesetter = Typesetter::new(&String::from_utf8(read("document.typ")).unwrap()).unwrap();
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("sample-") && name.ends_with(".json"))
        .collect();
    names.sort();
    assert!(names.len() >= 8, "each kind in each language: {names:?}");
    for name in names {
        let mut data: Value = serde_json::from_slice(&read(&name)).unwrap();
        let language = data["language"].as_str().unwrap().to_owned();
        assert!(name.ends_with(&format!("-{language}.json")), "{name} is in {language}");
        data["labels"] = labels[language].clone();
        let mut images = vec![("logo", read("sample-logo.svg"))];
        if let Some(text) = data["qr_text"].as_str() {
            images.push(("qr", qr_svg(text).unwrap().into_bytes()));
        }
        let data = data.to_string().into_bytes();
        let input = Input { data: &data, images: &images, created: 1_777_888_800, ..Input::default() };
        let pdf = typesetter.typeset(input).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((pdf.pages, pdf.conformance), (1, Conformance::Accessible), "{name}");
        assert!(pdf.replaced.is_empty() && pdf.dropped.is_empty(), "{name}: {:?} {:?}", pdf.replaced, pdf.dropped);
    }
}

/// Returns the texts on the last page, and the number of pages.
fn last_page(typesetter: &Typesetter, data: &Value) -> (Vec<String>, usize) {
    fn collect(frame: &Frame, all: &mut Vec<String>) {
        for (_, item) in frame.items() {
            match item {
                FrameItem::Group(group) => collect(&group.frame, all),
                FrameItem::Text(text) => all.push(text.text.to_string()),
                _ => {}
            }
        }
    }
    let Runtime::Here(here) = &typesetter.place else { panic!("documents are typeset here") };
    let data = data.to_string().into_bytes();
    let input = Input { data: &data, ..Input::default() };
    let mut sheet = DocumentWorld::new(&here.desk, Vec::new(), input);
    sheet.set_data(Cleaner::new(&here.desk.fonts, &data).unwrap().json());
    let document = compile(&sheet).unwrap();
    let mut all = Vec::new();
    collect(&document.pages().last().unwrap().frame, &mut all);
    (all, document.pages().len())
}

#[test]
fn a_footer_is_never_alone_on_a_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates");
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let labels: Value = serde_json::from_slice(&read("labels.json")).unwrap();
    let typesetter = Typesetter::new(&String::from_utf8(read("document.typ")).unwrap()).unwrap();
    let mut data: Value = serde_json::from_slice(&read("sample-invoice-nl.json")).unwrap();
    data["labels"] = labels["nl"].clone();
    data["footer"] = Value::from("Dag en nacht bereikbaar.\nOok op zondag.");
    let (row, mut alone) = (data["rows"][0].clone(), 0);
    for (notes, before) in [("", "onder vermelding van F2026-0042."), ("Eerste.\nTot ziens.", "Tot ziens.")] {
        data["notes"] = Value::from(notes);
        for count in 5..13 {
            data["rows"] = Value::from(vec![row.clone(); count]);
            let (texts, pages) = last_page(&typesetter, &data);
            alone += usize::from(pages == 2 && texts.len() < 20);
            let has = |part: &str| texts.iter().any(|text| text.contains(part));
            assert!(has("Ook op zondag.") && has(before), "{count} rows: {texts:?}");
            assert!(!notes.is_empty() || has("Totaal incl. btw"), "{count} rows: the request is alone: {texts:?}");
        }
    }
    assert!(alone > 2, "{alone} documents just did not fit a page");
}

#[test]
fn a_request_stands_with_the_totals() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates");
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let labels: Value = serde_json::from_slice(&read("labels.json")).unwrap();
    let typesetter = Typesetter::new(&String::from_utf8(read("document.typ")).unwrap()).unwrap();
    for (kind, request) in [("invoice", "onder vermelding van F2026-0042."), ("quote", "accepteren")] {
        let mut data: Value = serde_json::from_slice(&read(&format!("sample-{kind}-nl.json"))).unwrap();
        data["labels"] = labels["nl"].clone();
        data["notes"] = Value::from("");
        // A signature box may come after it.
        data["sign"] = Value::from(false);
        let (row, mut pages) = (data["rows"][0].clone(), Vec::new());
        for count in 6..16 {
            data["rows"] = Value::from(vec![row.clone(); count]);
            let (texts, all) = last_page(&typesetter, &data);
            let has = |part: &str| texts.iter().any(|text| text.contains(part));
            assert!(has("Totaal incl. btw") && has(request), "{kind} with {count} rows: {texts:?}");
            pages.push(all);
        }
        assert!(pages.contains(&1) && pages.contains(&2), "{kind}: {pages:?}");
    }
}

#[test]
fn a_signature_is_never_alone_on_a_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates");
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let labels: Value = serde_json::from_slice(&read("labels.json")).unwrap();
    let typesetter = Typesetter::new(&String::from_utf8(read("document.typ")).unwrap()).unwrap();
    let cases = [
        ("quote", "", "", "accepteren"),
        ("quote", "", "Ook op zondag.", "accepteren"),
        ("workorder", "Tot ziens.", "", "Tot ziens."),
    ];
    for (kind, notes, footer, before) in cases {
        let mut data: Value = serde_json::from_slice(&read(&format!("sample-{kind}-nl.json"))).unwrap();
        data["labels"] = labels["nl"].clone();
        (data["notes"], data["footer"], data["sign"]) = (Value::from(notes), Value::from(footer), Value::from(true));
        let (row, mut pages) = (data["rows"][0].clone(), Vec::new());
        for count in 1..13 {
            data["rows"] = Value::from(vec![row.clone(); count]);
            let (texts, all) = last_page(&typesetter, &data);
            let has = |part: &str| texts.iter().any(|text| text.contains(part));
            assert!(has("Handtekening") && has(before), "{kind} with {count} rows: {texts:?}");
            pages.push(all);
        }
        assert!(pages.contains(&1) && pages.contains(&2), "{kind}: {pages:?}");
    }
}

#[test]
fn a_further_page_names_the_sender() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates");
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let labels: Value = serde_json::from_slice(&read("labels.json")).unwrap();
    let typesetter = Typesetter::new(&String::from_utf8(read("document.typ")).unwrap()).unwrap();
    let mut data: Value = serde_json::from_slice(&read("sample-invoice-nl.json")).unwrap();
    data["labels"] = labels["nl"].clone();
    data["rows"] = Value::from(vec![data["rows"][0].clone(); 40]);
    let long = "Coöperatieve Installatie- en Onderhoudsvereniging ".repeat(4);
    for (name, shown) in [("Jansen Installatie", "Jansen Installatie"), (long.trim_end(), "…")] {
        data["sender"]["name"] = Value::from(name);
        let (texts, pages) = last_page(&typesetter, &data);
        assert!(pages > 1);
        // The header is one line: the beginning of the name, and all of it if it fits.
        let is_named = |text: &String| text.starts_with(&name[..18]) && text.ends_with(shown);
        assert!(texts.iter().any(is_named), "{name}: {texts:?}");
        assert!(texts.iter().any(|text| text.contains("F2026-0042")), "{texts:?}");
    }
    // Nothing is left of the line for it.
    data["number"] = Value::from("F2026-".repeat(40));
    last_page(&typesetter, &data);
}
