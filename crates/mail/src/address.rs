//! Mail addresses as they can appear in a header or an SMTP command.

use std::net::IpAddr;

/// The protocol rejects longer paths.
const LONGEST: usize = 254;

/// Validates `email` and encodes a non-ASCII domain as `xn--…`. Then only the part before the @ can be non-ASCII.
pub(crate) fn parse(email: &str) -> Result<lettre::Address, String> {
    let shown = || email.escape_debug();
    if has_break(email) {
        return Err(format!("'{}' contains a line break or control character", shown()));
    }
    if email.len() > LONGEST {
        return Err(format!("an address may have at most {LONGEST} characters"));
    }
    let (user, domain) = email.rsplit_once('@').ok_or_else(|| format!("'{}' has no @", shown()))?;
    let domain = if domain.is_ascii() {
        domain.to_owned()
    } else {
        idna::domain_to_ascii(domain).map_err(|_| format!("'{}' has no valid domain", shown()))?
    };
    if !plain_domain(&domain) {
        return Err(format!("'{}' has no valid domain", shown()));
    }
    lettre::Address::new(user, domain).map_err(|_| format!("'{}' is not a valid e-mail address", shown()))
}

/// Letters, digits, dots and dashes, or an IP address in brackets: stricter than the library.
fn plain_domain(domain: &str) -> bool {
    match domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(ip) => ip.strip_prefix("IPv6:").unwrap_or(ip).parse::<IpAddr>().is_ok(),
        None => domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')),
    }
}

/// Whether `text` contains a line break, also for less strict readers.
pub(crate) fn has_break(text: &str) -> bool {
    text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}
