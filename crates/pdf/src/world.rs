//! The files that the compiler can access: the template, the data, the images and the fonts.

use std::collections::BTreeMap;

use serde_json::json;
use typst::diag::{FileError, FileResult};
use typst::foundations::{Bytes, Datetime, Duration};
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt, World};

use crate::drawn::{Drawn, Image};
use crate::fonts::Fonts;
use crate::{Error, Input, moment};

/// Appended to the template, so that no template can omit it and its line numbers do not change.
const ATTACH: &str = r#"
#{
  let it = json("/attachment.json")
  if it != none {
    pdf.attach(
      it.name, read("/attachment", encoding: none),
      mime-type: it.mime, description: it.description, relationship: it.relationship,
    )
  }
}
"#;

/// What all documents share.
pub(crate) struct TemplateEnv {
    pub(crate) fonts: Fonts,
    pub(crate) drawn: Drawn,
    library: LazyHash<Library>,
    template: Source,
    data: FileId,
    images: FileId,
    attachment: FileId,
    attachment_json: FileId,
}

impl TemplateEnv {
    pub(crate) fn new(fonts: Fonts, template: &str) -> Result<TemplateEnv, Error> {
        let main = file("/template.typ")?;
        let mut desk = TemplateEnv {
            fonts,
            drawn: Drawn::default(),
            library: LazyHash::new(Library::default()),
            template: Source::new(main, template.into()),
            data: file("/data.json")?,
            images: file("/images.json")?,
            attachment: file("/attachment")?,
            attachment_json: file("/attachment.json")?,
        };
        if let Some(fault) = desk.template.root().errors_and_warnings().0.first() {
            let sheet = DocumentWorld::new(&desk, Vec::new(), Input::default());
            return Err(Error::Template(crate::line(&sheet, fault.span), fault.message.to_string()));
        }
        desk.template = Source::new(main, format!("{template}{ATTACH}"));
        Ok(desk)
    }
}

/// What belongs to one document.
pub(crate) struct DocumentWorld<'a> {
    desk: &'a TemplateEnv,
    files: BTreeMap<u16, Bytes>,
    today: Option<Datetime>,
}

impl<'a> DocumentWorld<'a> {
    pub(crate) fn new(desk: &'a TemplateEnv, images: Vec<Image>, input: Input<'_>) -> DocumentWorld<'a> {
        let mut sheet = DocumentWorld { desk, files: BTreeMap::new(), today: moment(input.created) };
        let mut paths = serde_json::Map::new();
        for image in images {
            let path = format!("/image/{}", image.name);
            if let Ok(id) = file(&path) {
                sheet.put(id, image.bytes);
                paths.insert(image.name.into(), path.into());
            }
        }
        sheet.put(desk.images, Bytes::from_string(serde_json::Value::from(paths).to_string()));
        let about = input.attachment.map(|it| {
            sheet.put(desk.attachment, Bytes::new(it.bytes.clone()));
            json!({"name": it.name, "mime": it.mime, "description": it.description, "relationship": it.relationship})
        });
        sheet.put(desk.attachment_json, Bytes::from_string(json!(about).to_string()));
        sheet
    }

    pub(crate) fn set_data(&mut self, json: Vec<u8>) {
        self.put(self.desk.data, Bytes::new(json));
    }

    fn put(&mut self, id: FileId, bytes: Bytes) {
        self.files.insert(id.into_raw().get(), bytes);
    }
}

impl World for DocumentWorld<'_> {
    fn library(&self) -> &LazyHash<Library> {
        &self.desk.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.desk.fonts.book
    }

    fn main(&self) -> FileId {
        self.desk.template.id()
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == self.main() { Ok(self.desk.template.clone()) } else { Err(missing(id)) }
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        self.files.get(&id.into_raw().get()).cloned().ok_or_else(|| missing(id))
    }

    fn font(&self, index: usize) -> Option<Font> {
        self.desk.fonts.list.get(index).cloned()
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        self.today
    }
}

fn missing(id: FileId) -> FileError {
    FileError::NotFound(id.vpath().get_with_slash().into())
}

/// Returns a path of the virtual folder. The compiler stores each path forever, so there are few.
fn file(path: &str) -> Result<FileId, Error> {
    let path = VirtualPath::new(path).map_err(|_| Error::Template(None, format!("no path: {path}")))?;
    Ok(RootedPath::new(VirtualRoot::Project, path).intern())
}
