//! The rules of a field: required, read-only, searchable, sortable, limits, references.

use crate::text::{CONTROL, CONTROL_AND_BREAKS, NOT_IN_LINES, NOT_IN_NAMES};

/// The responses in which a field is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Views(u8);

/// Items of a list.
pub const LIST: Views = Views(1);
/// A single record by id.
pub const DETAIL: Views = Views(2);
/// The response to a create.
pub const CREATED: Views = Views(4);
/// The response to a PATCH.
pub const UPDATED: Views = Views(8);
/// The response to an action.
pub const ACTED: Views = Views(16);
/// All responses.
pub const ALL: Views = Views(31);
/// No response.
pub const NOWHERE: Views = Views(0);

impl Views {
    /// Whether `view` is included.
    pub const fn includes(self, view: Views) -> bool {
        self.0 & view.0 != 0
    }

    /// Returns the union of both.
    pub const fn and(self, other: Views) -> Views {
        Views(self.0 | other.0)
    }
}

/// A condition on a record, by which lists can be filtered: `waiting=true`.
#[derive(Clone, Copy, Debug)]
pub struct NamedCondition {
    /// The parameter; empty if there is no condition.
    pub parameter: &'static str,
    /// Returns the condition as SQL, without placeholders.
    pub sql: fn() -> String,
    /// What it says, for the documentation.
    pub doc: &'static str,
    /// If few records satisfy it, the end of the name of the index that has them, after that of the table.
    pub few: &'static str,
}

/// The rules of a field. Built with `const` methods: `INPUT.search().example("\"Hosting\"")`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Can be sent in a create.
    pub create: bool,
    /// Can be sent in a PATCH.
    pub patch: bool,
    /// Exists only in the body: it has no column and is in no response.
    pub sent_only: bool,
    /// Set by the server unless it is sent in a create; the limits apply to what is sent.
    pub given: bool,
    /// Requires a value.
    pub required: bool,
    /// Gets a value if none is sent, and requires one in a PATCH.
    pub kept: bool,
    /// `null` in a PATCH resets it to its default, or to the value that the record fills in.
    pub resets: bool,
    /// Is null in responses if it has no value; otherwise `""`.
    pub nullable: bool,
    /// Described as nullable only in responses and in a PATCH: a create omits it.
    pub null_once_made: bool,
    /// Cannot be changed once the record is final.
    pub locked_when_final: bool,
    /// A change creates a new revision of a final record.
    pub revises: bool,
    /// Records created from this one get the same value.
    pub copied: bool,
    /// The responses that include it.
    pub views: Views,
    /// Shown in the record's `meta`, since the contract does not list it among the other fields.
    pub in_meta: bool,
    /// Lists can be filtered by it.
    pub filter: bool,
    /// The parameter of that filter, if it has another name; invalid values are ignored.
    pub filter_as: &'static str,
    /// Another name of the filter, by which callers send the value.
    pub filter_also: &'static str,
    /// The parameter that filters by whether it has a value; or empty.
    pub filter_filled: &'static str,
    /// A condition on the record that lists can be filtered by.
    pub filter_when: NamedCondition,
    /// That filter accepts several values, separated by commas.
    pub filter_many: bool,
    /// The table whose records have the values of that filter as their names; or empty.
    pub named_in: &'static str,
    /// Returns the values of its set that records of this name have, if those are not all.
    pub choices_of: fn(&str) -> Option<&'static [&'static str]>,
    /// The field by which callers send the value, if only the server sets this one; or empty.
    pub sent_as: &'static str,
    /// The default value of that filter.
    pub assumed: &'static str,
    /// The word that matches every value in that filter.
    pub any: &'static str,
    /// The two list parameters of a range: first and last value.
    pub range: Option<(&'static str, &'static str)>,
    /// Lists can be sorted by it.
    pub sort: bool,
    /// Included in searches.
    pub search: bool,
    /// Searches find it together with the field before it.
    pub continues: bool,
    /// One of the fields by which people know a record.
    pub names: bool,
    /// A percentage, although its type does not say so.
    pub percent: bool,
    /// Maximum number of characters.
    pub max_length: usize,
    /// The characters that its text cannot have, as in a class of a regular expression. The record checks for those that other
    /// text can have.
    pub refused: &'static str,
    /// The types of the members of an object, which the record checks; empty for any.
    pub members: &'static [&'static str],
    /// Minimum of a number, in whole units.
    pub min: i64,
    /// Maximum of a number, in whole units.
    pub max: i64,
    /// Unique among the records of the account, together with these other fields.
    pub unique: Option<&'static [&'static str]>,
    /// The table that it refers to.
    pub refers: &'static str,
    /// The record is deleted together with the one that it refers to.
    pub owned: bool,
    /// The default, as JSON.
    pub default: &'static str,
    /// A valid example, as JSON: for the documentation and the tests.
    pub example: &'static str,
    /// Another one, for changes; empty if the first is used for them too, `-` if changes have none.
    pub changed_example: &'static str,
}

/// A field that callers can send.
pub const INPUT: Rules = Rules {
    create: true,
    patch: true,
    sent_only: false,
    given: false,
    required: false,
    kept: false,
    resets: false,
    nullable: false,
    null_once_made: false,
    locked_when_final: false,
    revises: false,
    copied: false,
    views: ALL,
    in_meta: false,
    filter: false,
    filter_as: "",
    filter_also: "",
    filter_filled: "",
    filter_when: NamedCondition { parameter: "", sql: String::new, doc: "", few: "" },
    filter_many: false,
    named_in: "",
    choices_of: |_| None,
    sent_as: "",
    assumed: "",
    any: "",
    range: None,
    sort: false,
    search: false,
    continues: false,
    names: false,
    percent: false,
    max_length: 255,
    refused: CONTROL,
    members: &[],
    min: -999_999_999_999,
    max: 999_999_999_999,
    unique: None,
    refers: "",
    owned: false,
    default: "",
    example: "",
    changed_example: "",
};

/// A field that callers must send.
pub const REQUIRED: Rules = Rules { required: true, ..INPUT };

/// A field that only the server sets.
pub const COMPUTED: Rules = Rules { create: false, patch: false, ..INPUT };

/// A field that the server sets, unless it is sent in a create.
pub const GIVEN: Rules = Rules { patch: false, given: true, ..INPUT };

impl Rules {
    /// Can be sent in a create, but not changed by PATCH.
    pub const fn create_only(self) -> Rules {
        Rules { patch: false, ..self }
    }

    /// Exists only in the body: the record reads it before it is saved, and does not store it.
    pub const fn sent_only(self) -> Rules {
        Rules { sent_only: true, views: NOWHERE, ..self }
    }

    /// Cannot be changed by a PATCH of a final record.
    pub const fn locked_when_final(self) -> Rules {
        Rules { locked_when_final: true, ..self }
    }

    /// A change creates a new revision of a final record.
    pub const fn revises(self) -> Rules {
        Rules { revises: true, ..self }
    }

    /// Records created from this one get the same value.
    pub const fn copied(self) -> Rules {
        Rules { copied: true, ..self }
    }

    /// Is `null` if it has no value, once the record exists; a create omits it.
    pub const fn nullable_once_made(self) -> Rules {
        Rules { nullable: true, null_once_made: true, ..self }
    }

    /// Returns the rules that describe the body of a create.
    pub const fn for_create(self) -> Rules {
        Rules { nullable: self.nullable && !self.null_once_made, ..self }
    }

    /// Returns the rules that describe responses and filters: values that the server sets have no limits.
    pub const fn for_answers(self) -> Rules {
        if !self.given {
            return self;
        }
        let Rules { min, max, max_length, default, example, .. } = COMPUTED;
        Rules { create: false, min, max, max_length, default, example, ..self }
    }

    /// Is `null` if it has no value.
    pub const fn nullable(self) -> Rules {
        Rules { nullable: true, ..self }
    }

    /// Shown only in these responses.
    pub const fn shown(self, views: Views) -> Rules {
        Rules { views, ..self }
    }

    /// Shown only in the record's `meta`.
    pub const fn in_meta(self) -> Rules {
        Rules { in_meta: true, views: NOWHERE, ..self }
    }

    /// Lists can be filtered by it.
    pub const fn filter(self) -> Rules {
        Rules { filter: true, ..self }
    }

    /// Lists can be filtered by it under this name, and invalid values are ignored.
    pub const fn filter_as(self, parameter: &'static str) -> Rules {
        Rules { filter_as: parameter, ..self }
    }

    /// Lists can be filtered by it, also under the name by which callers send the value.
    pub const fn filter_also(self, parameter: &'static str) -> Rules {
        Rules { filter: true, filter_also: parameter, ..self }
    }

    /// Lists can be filtered by whether it has a value.
    pub const fn filter_filled(self, parameter: &'static str) -> Rules {
        Rules { filter_filled: parameter, ..self }
    }

    /// Lists can be filtered by whether a condition holds: SQL without placeholders, on the columns of the table. `{today}` is
    /// the day in the time zone of the account.
    pub const fn filter_when(self, parameter: &'static str, sql: fn() -> String, doc: &'static str) -> Rules {
        Rules { filter_when: NamedCondition { parameter, sql, doc, few: "" }, ..self }
    }

    /// The same, if few records satisfy the condition and a partial index has them: `few` is the end of its name, after that of the
    /// table. The condition begins with that of the index.
    pub const fn filter_when_few(
        self,
        parameter: &'static str,
        sql: fn() -> String,
        few: &'static str,
        doc: &'static str,
    ) -> Rules {
        Rules { filter_when: NamedCondition { parameter, sql, doc, few }, ..self }
    }

    /// Lists can be filtered by one or several values, separated by commas.
    pub const fn filter_many(self) -> Rules {
        Rules { filter: true, filter_many: true, ..self }
    }

    /// The values of the filter are the names of the records in `table`.
    pub const fn named_in(self, table: &'static str) -> Rules {
        Rules { named_in: table, ..self }
    }

    /// Records of this name have only some of the values of its set.
    pub const fn choices_of(self, choices: fn(&str) -> Option<&'static [&'static str]>) -> Rules {
        Rules { choices_of: choices, ..self }
    }

    /// Callers send the value in another field.
    pub const fn sent_as(self, field: &'static str) -> Rules {
        Rules { sent_as: field, ..self }
    }

    /// Sets the default value of the filter.
    pub const fn assumed(self, value: &'static str) -> Rules {
        Rules { assumed: value, ..self }
    }

    /// Sets the word that matches every value in the filter.
    pub const fn any(self, word: &'static str) -> Rules {
        Rules { any: word, ..self }
    }

    /// Sets the two list parameters of a range: first and last value.
    pub const fn range(self, from: &'static str, to: &'static str) -> Rules {
        Rules { range: Some((from, to)), ..self }
    }

    /// Sets the maximum number of characters.
    pub const fn at_most(self, characters: usize) -> Rules {
        Rules { max_length: characters, ..self }
    }

    /// Has no line breaks.
    pub const fn unbroken(self) -> Rules {
        Rules { refused: CONTROL_AND_BREAKS, ..self }
    }

    /// One line, as `check_line` requires.
    pub const fn one_line(self) -> Rules {
        Rules { refused: NOT_IN_LINES, ..self }
    }

    /// A name by which people recognize something, as `check_name` requires.
    pub const fn plain_name(self) -> Rules {
        Rules { refused: NOT_IN_NAMES, ..self }
    }

    /// An object whose members have these types.
    pub const fn members(self, types: &'static [&'static str]) -> Rules {
        Rules { members: types, ..self }
    }

    /// Lists can be sorted by it.
    pub const fn sort(self) -> Rules {
        Rules { sort: true, ..self }
    }

    /// Included in searches.
    pub const fn search(self) -> Rules {
        Rules { search: true, ..self }
    }

    /// Included in searches, also together with the field before it: a last name after a first name.
    pub const fn search_after(self) -> Rules {
        Rules { search: true, continues: true, ..self }
    }

    /// One of the fields by which people know a record: together they are its name in lists and links.
    pub const fn names(self) -> Rules {
        Rules { names: true, ..self }
    }

    /// A percentage, although its type does not say so.
    pub const fn percent(self) -> Rules {
        Rules { percent: true, ..self }
    }

    /// A long text: 64 KiB.
    pub const fn long(self) -> Rules {
        Rules { max_length: 65_536, ..self }
    }

    /// Sets the range of a number.
    pub const fn between(self, min: i64, max: i64) -> Rules {
        Rules { min, max, ..self }
    }

    /// Unique among the records of the account, unless they differ in one of `others`.
    pub const fn unique(self, others: &'static [&'static str]) -> Rules {
        Rules { unique: Some(others), ..self }
    }

    /// Whether no two records of an account have the same value, whatever else they have.
    pub fn is_unique(&self) -> bool {
        self.unique.is_some_and(<[_]>::is_empty)
    }

    /// Refers to a record in `table`.
    pub const fn refers(self, table: &'static str) -> Rules {
        Rules { refers: table, ..self }
    }

    /// The record is deleted together with the one that it refers to.
    pub const fn owned(self) -> Rules {
        Rules { owned: true, ..self }
    }

    /// Gets a value if none is sent, and cannot be cleared by a PATCH.
    pub const fn kept(self) -> Rules {
        Rules { kept: true, ..self }
    }

    /// `null` in a PATCH resets it to its value when nothing is sent.
    pub const fn resets(self) -> Rules {
        Rules { resets: true, ..self }
    }

    /// Sets the default, as JSON, to which `null` in a PATCH resets it.
    pub const fn resets_to(self, json: &'static str) -> Rules {
        Rules { default: json, ..self.resets() }
    }

    /// Sets the default, as JSON.
    pub const fn default(self, json: &'static str) -> Rules {
        Rules { default: json, ..self }
    }

    /// Sets a valid example, as JSON.
    pub const fn example(self, json: &'static str) -> Rules {
        Rules { example: json, ..self }
    }

    /// Sets the example of a change, as JSON: that of a new record would be a duplicate if its values must differ.
    pub const fn changed_to(self, json: &'static str) -> Rules {
        Rules { changed_example: json, ..self }
    }

    /// Leaves it out of the example of a change, which callers may try on a record that is in use.
    pub const fn not_in_changes(self) -> Rules {
        Rules { changed_example: OMITTED, ..self }
    }
}

/// Stands for no example: it is no JSON.
const OMITTED: &str = "-";
