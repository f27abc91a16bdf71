//! The rules of a field: required, read-only, searchable, sortable, limits, references.

/// In which answers something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Views(u8);

/// Items of a list.
pub const LIST: Views = Views(1);
/// One record by its id.
pub const DETAIL: Views = Views(2);
/// The answer to a create.
pub const CREATED: Views = Views(4);
/// The answer to a PATCH.
pub const UPDATED: Views = Views(8);
/// The answer to an action.
pub const ACTED: Views = Views(16);
/// Everywhere.
pub const ALL: Views = Views(31);
/// In no answer.
pub const NOWHERE: Views = Views(0);

impl Views {
    /// Whether `view` is among these.
    pub const fn includes(self, view: Views) -> bool {
        self.0 & view.0 != 0
    }

    /// These and those.
    pub const fn and(self, other: Views) -> Views {
        Views(self.0 | other.0)
    }
}

/// What a field may do. Built with the `const` methods: `INPUT.search().example("\"Hosting\"")`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// May be sent when it is made.
    pub create: bool,
    /// May be sent in a PATCH.
    pub patch: bool,
    /// Is in the body alone: it has no column and no answer shows it.
    pub sent_only: bool,
    /// Is set by the server unless it is given when the record is made: the limits hold for what is given.
    pub given: bool,
    /// Must have a value.
    pub required: bool,
    /// Gets a value when none is sent, and must have one in a PATCH.
    pub kept: bool,
    /// `null` in a PATCH returns it to its default, or to what the record fills in.
    pub resets: bool,
    /// Is null in answers when it has no value; otherwise `""`.
    pub nullable: bool,
    /// Is described as null only in answers and in a PATCH: a new record leaves it out.
    pub null_once_made: bool,
    /// Cannot be changed once the record is final.
    pub locked_when_final: bool,
    /// A change of it makes a new revision of a record that is final.
    pub revises: bool,
    /// A record that is made of this one has the same value.
    pub copied: bool,
    /// Where it is shown.
    pub views: Views,
    /// Shown in the record's `meta` instead: the contract does not list it beside the others.
    pub in_meta: bool,
    /// Lists can be filtered by it.
    pub filter: bool,
    /// The parameter of that filter, when it has another name; values that are none are ignored.
    pub filter_as: &'static str,
    /// That filter takes several values with commas between them.
    pub filter_many: bool,
    /// The value a list is filtered by when the caller says nothing.
    pub assumed: &'static str,
    /// The word that stands for every value in a filter.
    pub any: &'static str,
    /// Lists take these two parameters for the first and the last value.
    pub range: Option<(&'static str, &'static str)>,
    /// Lists can be sorted by it.
    pub sort: bool,
    /// Searches look in it.
    pub search: bool,
    /// A text that is not read for lists.
    pub heavy: bool,
    /// Characters in a text.
    pub max_length: usize,
    /// Smallest whole number or decimal, in whole units.
    pub min: i64,
    /// Largest whole number or decimal, in whole units.
    pub max: i64,
    /// No two records of the account have the same; with the values of these other fields.
    pub unique: Option<&'static [&'static str]>,
    /// The table whose record it names.
    pub refers: &'static str,
    /// What it is when nothing is sent, as JSON.
    pub default: &'static str,
    /// A good value, as JSON: for the documents and the tests.
    pub example: &'static str,
}

/// A field that callers may send.
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
    filter_many: false,
    assumed: "",
    any: "",
    range: None,
    sort: false,
    search: false,
    heavy: false,
    max_length: 255,
    min: -999_999_999_999,
    max: 999_999_999_999,
    unique: None,
    refers: "",
    default: "",
    example: "",
};

/// A field that must be sent.
pub const REQUIRED: Rules = Rules { required: true, ..INPUT };

/// A field that only the server sets.
pub const COMPUTED: Rules = Rules { create: false, patch: false, ..INPUT };

/// A field that the server sets, unless it is sent when the record is made.
pub const GIVEN: Rules = Rules { patch: false, given: true, ..INPUT };

impl Rules {
    /// Can be sent when the record is made, not changed by PATCH.
    pub const fn create_only(self) -> Rules {
        Rules { patch: false, ..self }
    }

    /// In the body alone: the record reads it before it is saved, and does not keep it.
    pub const fn sent_only(self) -> Rules {
        Rules { sent_only: true, views: NOWHERE, ..self }
    }

    /// A PATCH of a record that is final cannot change it.
    pub const fn locked_when_final(self) -> Rules {
        Rules { locked_when_final: true, ..self }
    }

    /// A change of it makes a new revision of a record that is final.
    pub const fn revises(self) -> Rules {
        Rules { revises: true, ..self }
    }

    /// A record that is made of this one has the same value.
    pub const fn copied(self) -> Rules {
        Rules { copied: true, ..self }
    }

    /// `null` when it has no value, once the record is there; a new record leaves it out.
    pub const fn nullable_once_made(self) -> Rules {
        Rules { nullable: true, null_once_made: true, ..self }
    }

    /// The rules by which the body of a new record is described.
    pub const fn for_create(self) -> Rules {
        Rules { nullable: self.nullable && !self.null_once_made, ..self }
    }

    /// The rules by which answers and filters are described: what the server sets has no limits.
    pub const fn for_answers(self) -> Rules {
        if !self.given {
            return self;
        }
        let Rules { min, max, max_length, default, example, .. } = COMPUTED;
        Rules { create: false, min, max, max_length, default, example, ..self }
    }

    /// `null` when it has no value.
    pub const fn nullable(self) -> Rules {
        Rules { nullable: true, ..self }
    }

    /// Shown only there.
    pub const fn shown(self, views: Views) -> Rules {
        Rules { views, ..self }
    }

    /// Shown in the record's `meta`, and nowhere else.
    pub const fn in_meta(self) -> Rules {
        Rules { in_meta: true, views: NOWHERE, ..self }
    }

    /// Lists can be filtered by it.
    pub const fn filter(self) -> Rules {
        Rules { filter: true, ..self }
    }

    /// Lists can be filtered by it under this name, and values that are none are ignored.
    pub const fn filter_as(self, parameter: &'static str) -> Rules {
        Rules { filter_as: parameter, ..self }
    }

    /// Lists can be filtered by it, by one value or by several with commas between them.
    pub const fn filter_many(self) -> Rules {
        Rules { filter: true, filter_many: true, ..self }
    }

    /// Lists are filtered by this value when the caller says nothing.
    pub const fn assumed(self, value: &'static str) -> Rules {
        Rules { assumed: value, ..self }
    }

    /// This word in a filter stands for every value.
    pub const fn any(self, word: &'static str) -> Rules {
        Rules { any: word, ..self }
    }

    /// Lists take these two parameters for the first and the last value.
    pub const fn range(self, from: &'static str, to: &'static str) -> Rules {
        Rules { range: Some((from, to)), ..self }
    }

    /// A text of this length at most.
    pub const fn at_most(self, characters: usize) -> Rules {
        Rules { max_length: characters, ..self }
    }

    /// Lists can be sorted by it.
    pub const fn sort(self) -> Rules {
        Rules { sort: true, ..self }
    }

    /// Searches look in it.
    pub const fn search(self) -> Rules {
        Rules { search: true, ..self }
    }

    /// A text that no list shows, and that is not read for one.
    pub const fn heavy(self) -> Rules {
        Rules { heavy: true, ..self }
    }

    /// A long text: 64 KiB.
    pub const fn long(self) -> Rules {
        Rules { max_length: 65_536, ..self }
    }

    /// A number from `min` to `max`.
    pub const fn between(self, min: i64, max: i64) -> Rules {
        Rules { min, max, ..self }
    }

    /// No two records of the account have the same value, unless they differ in one of `others`.
    pub const fn unique(self, others: &'static [&'static str]) -> Rules {
        Rules { unique: Some(others), ..self }
    }

    /// Whether no two records of an account have the same value, whatever else they have.
    pub fn is_unique(&self) -> bool {
        self.unique.is_some_and(<[_]>::is_empty)
    }

    /// The id of a record in `table`.
    pub const fn refers(self, table: &'static str) -> Rules {
        Rules { refers: table, ..self }
    }

    /// Gets a value when none is sent, and a PATCH cannot empty it.
    pub const fn kept(self) -> Rules {
        Rules { kept: true, ..self }
    }

    /// `null` in a PATCH returns it to what it is when nothing is sent.
    pub const fn resets(self) -> Rules {
        Rules { resets: true, ..self }
    }

    /// It is this when nothing is sent, as JSON, and again when `null` is sent in a PATCH.
    pub const fn resets_to(self, json: &'static str) -> Rules {
        Rules { default: json, ..self.resets() }
    }

    /// What it is when nothing is sent, as JSON.
    pub const fn default(self, json: &'static str) -> Rules {
        Rules { default: json, ..self }
    }

    /// A good value, as JSON.
    pub const fn example(self, json: &'static str) -> Rules {
        Rules { example: json, ..self }
    }
}
