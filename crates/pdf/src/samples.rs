//! Tests with the samples of the built-in template.

use std::fs;
use std::path::Path;

use serde_json::Value;

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
