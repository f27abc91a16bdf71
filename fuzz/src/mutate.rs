//! Mutates inputs at random, reproducibly by seed.

/// Maximum length of an input.
const LONGEST: usize = 4096;

/// Numbers at which programs often fail.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "7",
    "59",
    "60",
    "255",
    "65536",
    "2147483648",
    "9223372036854775807",
    "18446744073709551616",
    "1e400",
];

/// Creates inputs from a corpus and tokens of the format.
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    words: &'a [&'a str],
    state: u64,
}

impl<'a> Mutator<'a> {
    pub fn new(corpus: &'a [Vec<u8>], words: &'a [&'a str], seed: u64) -> Mutator<'a> {
        Mutator { corpus, words, state: seed }
    }

    /// Returns an input of the corpus with one to eight mutations.
    pub fn next(&mut self) -> Vec<u8> {
        let corpus = self.corpus;
        let mut input = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let (corpus, words) = (self.corpus, self.words);
        let place = self.below(input.len() + 1);
        let end = (place + 1 + self.below(16)).min(input.len());
        match self.below(10) {
            0 if place < input.len() => input[place] ^= 1 << self.below(8),
            1 if place < input.len() => input[place] = self.byte(),
            2 => input.insert(place, self.byte()),
            3 if place < end => drop(input.drain(place..end)),
            4 if place < end => {
                let again = input[place..end].repeat(1 + self.below(20));
                insert(input, place, &again);
            }
            5 => {
                let number = NUMBERS[self.below(NUMBERS.len())];
                let digits = input[place..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                input.splice(place..place + digits, number.bytes());
            }
            6 => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len() + 1);
                input.truncate(place);
                input.extend_from_slice(&other[from..]);
            }
            7 => input.truncate(place),
            _ if !words.is_empty() => {
                let word = words[self.below(words.len())];
                let until = if self.below(2) == 0 { end.max(place) } else { place };
                input.splice(place..until, word.bytes());
            }
            _ => {}
        }
    }

    fn byte(&mut self) -> u8 {
        self.next_number().to_le_bytes()[0]
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next_number() % most.max(1) as u64).unwrap_or(0)
    }

    /// SplitMix64.
    fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn insert(input: &mut Vec<u8>, place: usize, bytes: &[u8]) {
    input.splice(place..place, bytes.iter().copied());
}
