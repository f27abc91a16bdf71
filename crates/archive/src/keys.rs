use std::io;
use std::path::Path;

/// The age recipients that can decrypt an archive; none for an archive that is not encrypted.
#[derive(Clone, Default)]
pub struct Recipients(Vec<age::x25519::Recipient>);

impl Recipients {
    /// Parses recipients of the form `age1…`.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Recipients, String> {
        let parsed = texts.into_iter().map(|text| {
            // A secret must not appear in a message or a log.
            if text.to_ascii_uppercase().contains("SECRET") {
                return Err("this is an age identity, which is secret, and not a recipient: keep it away from the server and use the public key, age1… (`age-keygen -y`)".to_string());
            }
            let wrong = match text.starts_with("age1") {
                true => "is not an age recipient: it is incomplete or mistyped; copy the whole line that `age-keygen -y` prints",
                false => "is not an age recipient: it starts with age1 (`age-keygen -y`)",
            };
            text.parse().map_err(|_| format!("'{text}' {wrong}"))
        });
        parsed.collect::<Result<_, _>>().map(Recipients)
    }

    /// Whether archives are not encrypted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn encryptor(&self) -> io::Result<Option<age::Encryptor>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let all = self.0.iter().map(|recipient| recipient as &dyn age::Recipient);
        age::Encryptor::with_recipients(all).map(Some).map_err(io::Error::other)
    }
}

/// The age identities that decrypt an archive.
pub struct Identities(Vec<Box<dyn age::Identity>>);

impl Identities {
    /// Reads the file that `age-keygen` writes.
    pub fn read(path: &Path) -> Result<Identities, String> {
        // Somebody who gives the identity in place of its file must not find it in a message or a log.
        if path.to_string_lossy().to_ascii_uppercase().contains("AGE-SECRET-KEY-") && !path.exists() {
            return Err("this is an age identity itself, which is secret: name the file that contains it".to_string());
        }
        let place = path.display();
        // The text is a secret and must not appear in a message.
        let file = std::fs::File::open(path).map_err(|error| format!("{place}: {error}"))?;
        let parsed = age::IdentityFile::from_buffer(io::BufReader::new(file));
        let parsed = parsed.map_err(|_| format!("{place} is not a file with age identities (`age-keygen`)"))?;
        let all = parsed.into_identities().map_err(|_| format!("the age identities in {place} cannot be used"))?;
        if all.is_empty() {
            return Err(format!("{place} contains no age identity (AGE-SECRET-KEY-1…)"));
        }
        Ok(Identities(all))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &dyn age::Identity> {
        self.0.iter().map(|identity| identity.as_ref())
    }
}
