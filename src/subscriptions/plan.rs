//! The dates of a subscription's invoices.

use engine::choice;
use engine::error::{FieldCode, Violation, violation};
use engine::json::Json;
use engine::record::{Kind, Rules, stored_date};
use jiff::civil::Date;
use schedule::{Frequency, Schedule};
use serde_json::{Value as Schema, json};
use store::{Row, Value};

choice! {
    /// Frequency of the invoices.
    pub enum Term {
        /// Every week.
        Weekly = "weekly",
        /// Every four weeks.
        FourWeeks = "four_weeks",
        /// Every month.
        #[default]
        Monthly = "monthly",
        /// Every three months.
        Quarterly = "quarterly",
        /// Every six months.
        HalfYearly = "half_yearly",
        /// Every year.
        Yearly = "yearly",
    }
}

impl Term {
    fn frequency(self) -> Frequency {
        match self {
            Term::Weekly => Frequency::Weekly,
            Term::FourWeeks => Frequency::FourWeeks,
            Term::Monthly => Frequency::Monthly,
            Term::Quarterly => Frequency::Quarterly,
            Term::HalfYearly => Frequency::HalfYearly,
            Term::Yearly => Frequency::Yearly,
        }
    }

    /// Whether the term is in weeks, and so has a day of the week.
    pub fn in_weeks(self) -> bool {
        matches!(self, Term::Weekly | Term::FourWeeks)
    }
}

/// The start and the days of the invoices: together with a term, these determine all dates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The date from which periods are counted.
    pub anchor: Option<Date>,
    /// The first date, if it was set separately.
    pub first: Option<Date>,
    /// The selected day of the month, or 0 for that of the start.
    pub chosen_day: i8,
    /// The selected day of the week, or 0 for that of the start.
    pub chosen_weekday: i8,
    /// The day of the month; the 31st remains 31 in short months.
    pub day: i8,
    /// The day of the week, from Monday (1).
    pub weekday: i8,
}

impl Plan {
    /// Creates a plan from `anchor` on, with the selected days, 0 for none.
    pub fn new(anchor: Date, first: Option<Date>, chosen_day: i8, chosen_weekday: i8) -> Plan {
        let shown = first.unwrap_or(anchor);
        let day = if chosen_day > 0 { chosen_day } else { shown.day() };
        let weekday = if chosen_weekday > 0 { chosen_weekday } else { shown.weekday().to_monday_one_offset() };
        Plan { anchor: Some(anchor), first, chosen_day, chosen_weekday, day, weekday }
    }

    /// Returns the first date on or after `day`.
    pub fn from(&self, term: Term, day: Date) -> Option<Date> {
        let schedule = Schedule::new(term.frequency(), self.anchor?, self.first, Some(self.day), Some(self.weekday));
        schedule.date(schedule.first_from(day)?)
    }

    /// Returns the first date.
    pub fn beginning(&self, term: Term) -> Option<Date> {
        self.from(term, Date::MIN)
    }
}

impl Kind for Plan {
    const NAME: &'static str = "data";

    fn to_db(&self) -> Value<'_> {
        let date = |date: Option<Date>| date.map(|date| date.to_string()).unwrap_or_default();
        let days = format!("{} {} {} {}", self.chosen_day, self.chosen_weekday, self.day, self.weekday);
        format!("{},{},{days}", date(self.anchor), date(self.first)).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let parts: Vec<&str> = row.text(column)?.split([',', ' ']).collect();
        let &[anchor, first, chosen_day, chosen_weekday, day, weekday] = parts.as_slice() else {
            return Err(store::Error::unreadable("it is not two dates and four numbers"));
        };
        let date = |text: &str| if text.is_empty() { Ok(None) } else { stored_date(text).map(Some) };
        let number = |text: &str| text.parse().map_err(|_| store::Error::unreadable("a day in it is not a number"));
        Ok(Plan {
            anchor: date(anchor)?,
            first: date(first)?,
            chosen_day: number(chosen_day)?,
            chosen_weekday: number(chosen_weekday)?,
            day: number(day)?,
            weekday: number(weekday)?,
        })
    }

    fn from_json(_: &Json, _: &Rules) -> Result<Self, Violation> {
        Err(violation(FieldCode::ReadOnly, "cannot be set here"))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        let kind = if self.chosen_day > 0 { "day_of_month" } else { "start_date" };
        let shown = json!({"schedule_type": kind, "day_of_month": self.day, "day_of_week": self.weekday});
        out.extend_from_slice(shown.to_string().as_bytes());
    }

    fn schema(_: &Rules) -> Schema {
        json!({"type": "object", "properties": {
            "schedule_type": {"type": "string", "enum": ["start_date", "day_of_month"]},
            "day_of_month": {"type": "integer"}, "day_of_week": {"type": "integer"},
        }})
    }
}
