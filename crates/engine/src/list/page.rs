//! The place of a page in a list, and its response.

use crate::call::{Answer, Call, Outcome};
use crate::error::{FieldCode, FieldErrors, Result, Violation, violation};

/// Records per page, unless the request says otherwise, and at most.
pub(super) const PER_PAGE: i64 = 25;
pub(super) const MAX_PER_PAGE: i64 = 100;

/// The place of a page in a list.
pub struct Page {
    /// Its number, from 1 on.
    pub page: i64,
    /// Items per page.
    pub per_page: i64,
    pub(super) ignored: Vec<String>,
}

/// How many items a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Total {
    /// So many.
    Exactly(i64),
    /// More than these, which were counted.
    AtLeast(i64),
}

impl Total {
    fn counted(self) -> i64 {
        match self {
            Total::Exactly(total) | Total::AtLeast(total) => total,
        }
    }

    /// Returns the member of `meta`.
    pub(super) fn member(self) -> String {
        match self {
            Total::Exactly(total) => format!("\"total\":{total}"),
            Total::AtLeast(total) => format!("\"total\":{total},\"total_is_minimum\":true"),
        }
    }
}

impl Page {
    /// Parses a query that has no other parameters.
    pub fn read(call: &Call) -> Result<Page> {
        let mut page = Page { page: 1, per_page: PER_PAGE, ignored: Vec::new() };
        let mut faults = FieldErrors::default();
        for name in call.query.names() {
            let number = || whole_from_one(call.query.get(name).unwrap_or_default());
            match name {
                "page" => page.page = faults.take(name, number()).unwrap_or(1),
                "per_page" => page.per_page = faults.take(name, number()).unwrap_or(PER_PAGE).min(MAX_PER_PAGE),
                _ => page.ignored.push(name.to_string()),
            }
        }
        call.refuse_unknown(&page.ignored, &["page", "per_page"], &mut faults);
        faults.into_result()?;
        Ok(page)
    }

    /// Returns how many items come before it.
    pub fn offset(&self) -> i64 {
        (self.page - 1).saturating_mul(self.per_page)
    }

    /// Returns the response with this page of `total` items.
    pub fn answer(&self, data: Vec<u8>, total: i64) -> Answer {
        self.answer_of(data, 0, Total::Exactly(total))
    }

    /// The same for a list that may have more items than were counted, with `rows` of them on this page.
    pub(super) fn answer_of(&self, data: Vec<u8>, rows: i64, total: Total) -> Answer {
        let pages = (total.counted() + self.per_page - 1) / self.per_page;
        let mut answer = Answer::data(Outcome::Done, data);
        answer.meta =
            vec![format!("\"page\":{},\"per_page\":{},{},\"pages\":{pages}", self.page, self.per_page, total.member())];
        let is_counted = matches!(total, Total::Exactly(_));
        let beside = [("first", 1), ("prev", self.page - 1), ("next", self.page + 1), ("last", pages.max(1))];
        let reachable = beside.into_iter().filter(|(relation, page)| match *relation {
            "prev" => *page >= 1 && (*page <= pages || !is_counted && rows > 0),
            "next" => {
                if is_counted {
                    *page <= pages
                } else {
                    rows == self.per_page
                }
            }
            "last" => is_counted,
            _ => true,
        });
        answer.pages = reachable.collect();
        answer.with_texts("ignored_params", &self.ignored)
    }
}

pub(super) fn whole_from_one(text: &str) -> Result<i64, Violation> {
    // Digits only: a number beyond an i64 is a page past the end.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(violation(FieldCode::WrongType, "must be an integer of 1 or more"));
    }
    match text.parse().unwrap_or(i64::from(i32::MAX)) {
        0 => Err(violation(FieldCode::OutOfRange, "must be an integer of 1 or more")),
        number => Ok(number.min(i64::from(i32::MAX))),
    }
}
