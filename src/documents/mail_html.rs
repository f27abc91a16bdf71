//! Mail about documents as HTML.

use engine::context::Ctx;
use store::Tx;

use super::pdf::Style;
use super::request::Request;
use super::{Document, DocumentKind, Which, mail_text, page};
use crate::typesetting;

/// Formats the message as an HTML mail: the logo, the message, a summary of the document and a button to its page.
pub fn in_html<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>, message: &str) -> String {
    linking_to(&ctx.site.address(&format!("/d/{}", document.token)), tx, ctx, document, message)
}

/// Formats the message as it will be mailed, to be shown on this server: whatever its public address is, the logo is there.
pub fn preview<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>, message: &str) -> String {
    linking_to(&format!("/d/{}", document.token), tx, ctx, document, message)
}

fn linking_to<K: DocumentKind>(link: &str, tx: &mut Tx, ctx: &Ctx, document: &Document<K>, message: &str) -> String {
    let sender = document.sender.json();
    let color = sender["primary_color"].as_str().unwrap_or("#1f4e79");
    let name = escape(sender["name"].as_str().unwrap_or_default());
    let head = match page::logo_of(tx, ctx, document) {
        Some(_) => {
            let logo = escape(&format!("{link}/logo"));
            format!("<img src=\"{logo}\" alt=\"{name}\" style=\"max-width:240px;max-height:64px;border:0\">")
        }
        None => format!("<span style=\"font-size:18px;font-weight:600;color:{color}\">{name}</span>"),
    };
    let rows = summary(ctx, document).into_iter().map(|(key, value)| {
        format!(
            "<tr><td style=\"padding:4px 24px 4px 0;color:#5f6871\">{}</td><td style=\"padding:4px 0;font-weight:600\">{}</td></tr>",
            escape(&key),
            escape(&value)
        )
    });
    let rows = rows.collect::<Vec<_>>().join("\n");
    let button = mail_text::built_in(document.language)[match K::WHICH {
        Which::Invoice => "view_invoice",
        Which::Quote => "view_quote",
        Which::Workorder => "view_workorder",
    }]
    .as_str()
    .unwrap_or_default();
    let (link, language) = (escape(link), document.language.wire());
    let words = escape(message.trim()).replace("\r\n", "\n").replace('\n', "<br>\n");
    let address = escape(&ctx.site.address(&format!("/d/{}", document.token)));
    let words = linked(&words, &address, &format!("<a href=\"{link}\" style=\"color:{color}\">{address}</a>"));
    format!(
        "<!doctype html>\n<html lang=\"{language}\"><body style=\"margin:0;padding:24px;\
         font:16px/1.5 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;color:#1c2126\">\n\
         <div style=\"max-width:600px\">\n<p style=\"margin:0 0 24px\">{head}</p>\n<p id=\"message\">{words}</p>\n\
         <table role=\"presentation\" cellspacing=\"0\" cellpadding=\"0\" style=\"margin:28px 0 0;border-top:2px solid {color};\
         border-collapse:collapse;font-size:15px\">\n{rows}\n</table>\n\
         <p style=\"margin:24px 0\"><a href=\"{link}\" style=\"background:{color};color:#ffffff;padding:12px 20px;\
         border-radius:6px;text-decoration:none;display:inline-block\">{button}</a></p>\n</div></body></html>\n"
    )
}

/// Returns the text with a link where it has the address of the page, and not one that starts with it.
fn linked(text: &str, address: &str, link: &str) -> String {
    let mut parts = text.split(address);
    let mut out = parts.next().unwrap_or_default().to_string();
    for rest in parts {
        let goes_on = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "/?#-_".contains(c));
        out.push_str(if goes_on { address } else { link });
        out.push_str(rest);
    }
    out
}

/// Returns the facts that a client looks for first: number, amount and date, with the labels of the PDF.
fn summary<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> Vec<(String, String)> {
    let style = Style(document.language);
    let kind = match K::WHICH {
        Which::Invoice if document.is_credit => "credit",
        Which::Invoice => "invoice",
        Which::Quote => "quote",
        Which::Workorder => "workorder",
    };
    let labels = &typesetting::labels()[document.language.wire()];
    let label = |key: &str| {
        let own = labels[kind][key].as_str().or_else(|| labels["common"][key].as_str());
        own.unwrap_or_default().to_string()
    };
    let day = |date: Option<jiff::civil::Date>| date.map(|date| style.date(date)).unwrap_or_default();
    let total = || (label("incl"), style.money(document.total_incl_vat));
    let mut facts = vec![(label("number"), document.number.clone())];
    match (K::WHICH, document.request()) {
        (Which::Workorder, _) => facts.push((label("date"), day(document.invoice_date.0))),
        (Which::Quote, _) => facts.extend([total(), (label("due_date"), day(document.due_date.0))]),
        (Which::Invoice, Request::Transfer) => facts.extend([
            (label("open"), style.money(document.unpaid_amount())),
            (label("due_date"), day(document.due_date.0)),
        ]),
        (Which::Invoice, Request::Collection(date, _)) => facts.extend([
            (label("to_collect"), style.money(document.unpaid_amount())),
            (label("collection_date"), day(Some(date).filter(|date| *date >= ctx.now.date(&ctx.zone)))),
        ]),
        (Which::Invoice, _) => facts.extend([total(), (label("date"), day(document.invoice_date.0))]),
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
