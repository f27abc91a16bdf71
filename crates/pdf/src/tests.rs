use serde_json::json;

use super::*;

/// Shows a text, an image if there is one, and a table of the requested length.
const TEMPLATE: &str = r#"
#let data = json("/data.json")
#let images = json("/images.json")
#set document(title: "Test")
#set text(font: ("Inter", "DejaVu Sans", "Noto Emoji", "Droid Sans Fallback"), lang: "nl")
= Test
#data.text
#if "picture" in images { image(images.picture, alt: "A picture", width: 2cm) }
#table(columns: 2, table.header([a], [b]), ..range(data.at("rows", default: 1)).map(n => (str(n), data.text)).flatten())
"#;

/// One grey pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8,
    0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x68, 0, 0, 0, 0x82,
    0, 0x81, 0x77, 0xcd, 0x72, 0xb6, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

fn typesetter() -> Typesetter {
    Typesetter::new(TEMPLATE).unwrap()
}

fn set(text: &str, images: &[(&'static str, Vec<u8>)]) -> Pdf {
    let data = json!({"text": text}).to_string();
    typesetter().typeset(Input { data: data.as_bytes(), images, created: 1_777_888_800, ..Input::default() }).unwrap()
}

fn contains(pdf: &Pdf, text: &str) -> bool {
    pdf.bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn same_input_same_bytes() {
    let (one, other) = (set("Koffie", &[("picture", PNG.into())]), set("Koffie", &[("picture", PNG.into())]));
    assert_eq!(one.bytes, other.bytes);
    assert_ne!(one.bytes, set("Thee", &[("picture", PNG.into())]).bytes);
    assert_eq!(one.dropped, [""; 0]);
}

#[test]
fn threads_share_it() {
    let typesetter = typesetter();
    let input = Input { data: br#"{"text": "Koffie"}"#, ..Input::default() };
    let made = std::thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(|| typesetter.typeset(input).unwrap().bytes));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(made.iter().all(|bytes| *bytes == made[0]));
}

#[test]
fn conforms_to_pdf_a() {
    let pdf = set("Koffie", &[]);
    assert_eq!((pdf.pages, pdf.conformance), (1, Conformance::Accessible));
    assert!(
        contains(&pdf, "<pdfaid:part>3</pdfaid:part>") && contains(&pdf, "<pdfaid:conformance>A</pdfaid:conformance>")
    );
    assert!(contains(&pdf, "<pdfuaid:part>1</pdfuaid:part>"));
    assert!(contains(&pdf, "2026-05-04T10:00:00+00:00"), "the date is that of the input");
}

#[test]
fn embeds_a_file() {
    let xml = Attachment {
        name: "data.xml".into(),
        mime: "text/xml".into(),
        description: "The same for programs".into(),
        relationship: "alternative",
        bytes: b"<a/>".into(),
    };
    let data = json!({"text": "Koffie"}).to_string();
    let input = Input { data: data.as_bytes(), attachment: Some(&xml), created: 1, ..Input::default() };
    let pdf = typesetter().typeset(input).unwrap();
    assert_eq!((pdf.pages, pdf.conformance), (1, Conformance::Accessible));
    assert!(contains(&pdf, "data.xml") && contains(&pdf, "/AFRelationship/Alternative"));
}

#[test]
fn no_text_makes_it_fail() {
    let whole = [
        ("", ""),
        ("Łódź, Ελλάδα, Київ, İstanbul, tiếng Việt, e\u{301}, € ½ → ☎", ""),
        ("中文標題 日本語かな 한국어", ""),
        ("العربية مرحبا بالعالم שלום עולם", ""),
        ("🎉 👩‍👩‍👧‍👦 🇳🇱 1️⃣ ❤️", ""),
        ("#panic() $x$ *b* `r` \\ \u{200b}\u{ad}", ""),
        ("a\0b\u{1b}[31m\u{7f}\u{85}\u{2028}\u{feff}\u{202e}x\u{2066}y\u{e0041}", ""),
        ("ไทย \u{e000} \u{10ffff} \u{ffff}", "ยทไ\u{e000}\u{10ffff}\u{ffff}"),
        ("中\u{301}\u{20e3} שָׁ\u{301}", "\u{301}\u{20e3}"),
    ];
    for (text, missing) in whole {
        let pdf = set(text, &[]);
        let mut missing: Vec<char> = missing.chars().collect();
        missing.sort_unstable();
        assert_eq!(pdf.replaced, missing, "{text:?}");
        assert_eq!(pdf.conformance, Conformance::Accessible, "{text:?}");
    }
    // Every character, in one long word.
    let all: String = (0..=0x3_ffff).filter_map(char::from_u32).step_by(41).collect();
    assert!(set(&all, &[]).pages >= 1);
    let long = "W".repeat(5_000);
    assert!(set(&long, &[]).replaced.is_empty());
}

#[test]
fn leaves_broken_images_out() {
    let svg = |inner: &str| format!(r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{inner}</svg>"#);
    let broken = [
        Vec::new(),
        b"no image".to_vec(),
        PNG[..50].to_vec(),
        b"<svg xmlns=\"http://www.w3.org/2000/svg\"".to_vec(),
        b"%PDF-1.7".to_vec(),
        svg(r#"<image href="/etc/passwd.png" width="9" height="9"/>"#).into_bytes(),
    ];
    for bytes in broken {
        let pdf = set("Koffie", &[("picture", bytes.clone())]);
        assert_eq!(pdf.dropped, ["picture"], "{:?}", String::from_utf8_lossy(&bytes));
    }
    assert_eq!(set("Koffie", &[("picture", svg("<path d='M0 0h9v9z'/>").into_bytes())]).dropped, [""; 0]);
}

#[test]
fn a_thousand_rows() {
    let data = json!({"text": "Koffie", "rows": 1_000}).to_string();
    let pdf = typesetter().typeset(Input { data: data.as_bytes(), ..Input::default() }).unwrap();
    assert!(pdf.pages > 10);
}

#[test]
fn reports_the_line_of_an_error() {
    let parse = Typesetter::new("fine\n#let = 3\n").err().unwrap();
    assert!(parse.to_string().starts_with("template, line 2: "), "{parse}");
    let run = Typesetter::new("fine\n\n#nothing").unwrap();
    let run = run.typeset(Input { data: b"{}", ..Input::default() }).err().unwrap();
    assert_eq!(run.to_string(), "template, line 3: unknown variable: nothing");
    let disk = Typesetter::new("#read(\"/etc/passwd\")").unwrap();
    assert!(disk.typeset(Input { data: b"{}", ..Input::default() }).is_err());
    assert!(matches!(typesetter().typeset(Input::default()), Err(Error::Data(_))));
}

#[test]
fn qr_codes() {
    let svg = qr_svg("BCD\n002\n1\nSCT").unwrap();
    assert!(svg.starts_with("<svg "));
    assert_eq!(set("Koffie", &[("picture", svg.into_bytes())]).dropped, [""; 0]);
    assert_eq!(qr_svg(&"x".repeat(3_000)), Err(Error::Qr(3_000)));
}

/// A PNG of this size with an additional chunk.
fn drawn(width: u32, height: u32, extra: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let picture = ::image::DynamicImage::new_rgb8(width, height);
    picture.write_to(&mut std::io::Cursor::new(&mut bytes), ::image::ImageFormat::Png).unwrap();
    // After the signature and IHDR.
    bytes.splice(33..33, extra.iter().copied());
    bytes
}

#[test]
fn re_encodes_images() {
    let contains = |bytes: &[u8], words: &[u8]| bytes.windows(words.len()).any(|window| window == words);
    let size = |bytes: &[u8]| ::image::load_from_memory(bytes).map(|it| (it.width(), it.height())).unwrap();
    // A chunk with a profile and an invalid checksum.
    let profile = b"\0\0\0\x05iCCPx\0\0ab\0\0\0\0";
    let harmless = redraw::redraw(&drawn(9, 5, profile)).unwrap();
    assert!(!contains(&harmless, b"iCCP"));
    assert_eq!(size(&harmless), (9, 5));
    assert_eq!(size(&redraw::redraw(&drawn(4000, 10, b"")).unwrap()), (2000, 5));
    assert_eq!(redraw::redraw(&drawn(1, 1, b"\xff\xff\xff\xffiCCP")), None, "a chunk longer than the file");
    // A header that claims more pixels than the limit.
    let mut huge = drawn(1, 1, b"");
    huge[16..24].copy_from_slice(&[0, 0, 0x13, 0x89, 0, 0, 0x13, 0x88]);
    assert_eq!(redraw::redraw(&huge), None);

    let mut jpeg = Vec::new();
    let picture = ::image::DynamicImage::new_rgb8(9, 5);
    picture.write_to(&mut std::io::Cursor::new(&mut jpeg), ::image::ImageFormat::Jpeg).unwrap();
    let exif = b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let profile = [&b"\xff\xe2\0\x14ICC_PROFILE\0\x01\x01"[..], b"abcd"].concat();
    jpeg.splice(2..2, [&exif[..], &profile].concat());
    let harmless = redraw::redraw(&jpeg).unwrap();
    assert!(contains(&jpeg, b"ICC_PROFILE") && !contains(&harmless, b"ICC_PROFILE") && !contains(&harmless, b"Exif"));
    assert_eq!(size(&harmless), (5, 9), "its orientation is applied");
}

#[test]
fn a_separate_process_creates_the_same_documents() {
    let data = json!({"text": "Koffie \u{e000}"}).to_string();
    let images = [("picture", PNG.to_vec()), ("other", b"no image".to_vec())];
    let input = Input { data: data.as_bytes(), images: &images, created: 1_777_888_800, ..Input::default() };
    let here = typesetter().typeset(input).unwrap();
    // The protocol between the two processes, without the pipes.
    let mut asked = Vec::new();
    confined::put(&mut asked, TEMPLATE.as_bytes()).unwrap();
    apart::ask(&mut asked, input).unwrap();
    apart::ask(&mut asked, Input { data: b"no JSON", ..Input::default() }).unwrap();
    let mut said = Vec::new();
    work(&asked[..], &mut said).unwrap();
    let mut said = &said[..];
    let apart = apart::hear(&mut said, input).unwrap().unwrap();
    assert_eq!((apart.bytes, apart.pages, apart.replaced), (here.bytes, here.pages, here.replaced));
    assert_eq!((apart.dropped, apart.conformance), (vec!["other"], here.conformance));
    assert!(matches!(apart::hear(&mut said, Input::default()).unwrap(), Err(Error::Data(_))));

    let program =
        Program { path: "/bin/false".into(), arguments: Vec::new(), patience: std::time::Duration::from_secs(60) };
    let apart = Typesetter::apart(TEMPLATE, program).unwrap();
    assert!(matches!(apart.typeset(input), Err(Error::Failed(_))));
}

/// A JPEG of 8 × 8 pixels of one CMYK colour, as stored.
fn cmyk(adobe: bool, stored: [u8; 4]) -> Vec<u8> {
    let mut bytes = b"\xff\xd8".to_vec();
    if adobe {
        bytes.extend(b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0");
    }
    bytes.extend([&b"\xff\xdb\0\x43\0"[..], &[8; 64]].concat());
    bytes.extend(b"\xff\xc0\0\x14\x08\0\x08\0\x08\x04\x01\x11\0\x02\x11\0\x03\x11\0\x04\x11\0");
    // The lengths of a difference, 7 and 8 bits; and the end of a block.
    bytes.extend([&b"\xff\xc4\0\x15\0\x01\x01"[..], &[0; 14], &[7, 8]].concat());
    bytes.extend([&b"\xff\xc4\0\x14\x10\x01"[..], &[0; 15], &[0]].concat());
    bytes.extend(b"\xff\xda\0\x0e\x04\x01\0\x02\0\x03\0\x04\0\0\x3f\0");
    let code = |value: &u8| if *value == 255 { "011111110" } else { "10011111110" };
    let mut bits: String = stored.iter().map(code).collect();
    bits.push_str(&"1".repeat(bits.len().next_multiple_of(8) - bits.len()));
    bytes.extend(bits.as_bytes().chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| byte * 2 + (bit - b'0'))));
    bytes.extend(b"\xff\xd9");
    bytes
}

#[test]
fn a_cmyk_image_keeps_its_colours_or_is_rejected() {
    let red = redraw::accept(&cmyk(true, [255, 0, 0, 255])).unwrap();
    let pixel = ::image::load_from_memory(&red).unwrap().into_rgb8().get_pixel(4, 4).0;
    assert!(pixel[0] > 250 && pixel[1] < 5 && pixel[2] < 5, "{pixel:?}");
    assert_eq!(redraw::accept(&cmyk(false, [255, 0, 0, 255])), Err(Refusal::Colours));
}

#[test]
fn rejects_an_incomplete_image() {
    let png = drawn(40, 30, b"");
    let mut jpeg = Vec::new();
    ::image::DynamicImage::new_rgb8(40, 30)
        .write_to(&mut std::io::Cursor::new(&mut jpeg), ::image::ImageFormat::Jpeg)
        .unwrap();
    for whole in [&png, &jpeg] {
        assert!(redraw::accept(whole).is_ok());
        for length in [0, 1, 8, 20, 33, whole.len() / 2, whole.len() - 14, whole.len() - 2] {
            assert_eq!(redraw::accept(&whole[..length]), Err(Refusal::Unreadable), "{length} of {}", whole.len());
        }
    }
    assert_eq!(redraw::accept(b"GIF89a"), Err(Refusal::Unreadable));
}
