//! Creates a PDF from a template and data, or measures how long that takes:
//!
//! ```text
//! cargo run --release -p pdf --example render -- templates/document.typ templates/sample-invoice-nl.json out.pdf \
//!     --labels templates/labels.json --image logo=templates/sample-logo.svg [--bench 100]
//! ```
//!
//! `--labels` adds the labels of the data's `language` to the data; `qr_text` in the data becomes the image `qr`.

#![expect(clippy::print_stdout, reason = "a program for people at a terminal")]

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use pdf::{Input, Typesetter};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut paths, mut labels, mut images, mut bench) = (Vec::new(), None, Vec::new(), 0_usize);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--labels" => labels = Some(value()?),
            "--bench" => bench = value()?.parse()?,
            "--image" => {
                let value = value()?;
                let (name, path) = value.split_once('=').ok_or("--image NAME=FILE")?;
                let name: &'static str = String::from(name).leak();
                images.push((name, fs::read(path)?));
            }
            _ => paths.push(arg),
        }
    }
    let [template, data, out] = &paths[..] else {
        return Err("render TEMPLATE DATA OUT [--labels FILE] [--image NAME=FILE] [--bench N]".into());
    };

    let mut data: Value = serde_json::from_slice(&fs::read(data)?)?;
    if let Some(path) = labels {
        let all: Value = serde_json::from_slice(&fs::read(path)?)?;
        let language = data["language"].as_str().unwrap_or("en").to_owned();
        data["labels"] = all[language].clone();
    }
    if let Some(text) = data["qr_text"].as_str() {
        images.push(("qr", pdf::qr_svg(text)?.into_bytes()));
    }

    let start = Instant::now();
    let typesetter = Typesetter::new(&fs::read_to_string(template)?)?;
    println!("ready in {:.1?}", start.elapsed());
    let start = Instant::now();
    let made = make(&typesetter, &data, &images)?;
    println!("first document in {:.1?}: {} pages, {} bytes", start.elapsed(), made.pages, made.bytes.len());
    println!("{:?}, replaced {:?}, images left out {:?}", made.conformance, made.replaced, made.dropped);
    fs::write(out, &made.bytes)?;

    let mut times: Vec<Duration> = Vec::with_capacity(bench);
    for n in 0..bench {
        // A different number each time: identical data would only measure the compiler's cache.
        data["number"] = format!("B{n:06}").into();
        let start = Instant::now();
        make(&typesetter, &data, &images)?;
        times.push(start.elapsed());
    }
    times.sort();
    if let (Some(median), Some(late)) = (times.get(bench / 2), times.get(bench * 95 / 100)) {
        println!("{bench} documents: median {median:.1?}, 95 of 100 under {late:.1?}");
        println!(
            "memory: {}",
            fs::read_to_string("/proc/self/status").map_or_else(|_| String::new(), |s| resident(&s))
        );
    }
    Ok(())
}

fn make(typesetter: &Typesetter, data: &Value, images: &[(&'static str, Vec<u8>)]) -> Result<pdf::Pdf, pdf::Error> {
    let data = data.to_string().into_bytes();
    typesetter.typeset(Input { data: &data, images, created: 1_777_888_800, ..Input::default() })
}

fn resident(status: &str) -> String {
    status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM")).collect::<Vec<_>>().join(", ")
}
