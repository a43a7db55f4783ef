"""The tokenizer of raw text and pieces of words, equal to Hugging Face's; broken bytes."""

# ruff: noqa: RUF001

import functools
import itertools
import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcme_w2v.errors import FormatError
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.text.tokenizer import MAX_CHARACTERS, Tokenizer, WordPieces, character_pieces
from dcme_w2v.text.unicode_tables import ALPHABETS_END, ASSIGNED_END, unicode_tables

# The first words of the Universal Declaration of Human Rights, or a greeting, in 22 scripts, each
# also with marks that a text in another normal form has.
SCRIPTS = (
    "All human beings are born free & equal, in dignity; 'rights' (1948)!",
    "Všichni lidé rodí se svobodní, ÜBER naïve façade — Ångström № 5 ﬁn ½",
    "Все люди рождаются свободными и равными; ёлка Й",
    "Όλοι οι άνθρωποι γεννιούνται ΕΛΕΥΘΕΡΟΙ ίσοι ΐ ᾳ",
    "Բոլոր մարդիկ ծնվում են ազատ ու հավասար։",
    "ყველა ადამიანი იბადება თავისუფალი ᲗᲐᲕᲘ",
    "כל בני האדם נולדו בני חורין שָׁלוֹם",
    "يولد جميع الناس أحرارًا متساوين في الكرامة، ١٩٤٨",
    "ہر انسان آزاد می‌خواهم پیدا",
    "सभी मनुष्यों को गौरव और अधिकारों के क़ ज़",
    "সমস্ত মানুষ স্বাধীনভাবে সমান ো",
    "ਸਾਰੇ ਮਨੁੱਖ ਆਜ਼ਾਦ", "બધા માનવો જન્મથી સ્વતંત્ર", "மனிதப் பிறவியினர் சகலரும் ொ",
    "అన్ని మనుషులు స్వతంత్రులు", "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿ ೋ", "മനുഷ്യരെല്ലാവരും തുല്യാവകാശ",
    "มนุษย์ทั้งหลายเกิดมามีอิสระ ๑๒", "ມະນຸດທຸກຄົນ", "လူတိုင်းသည် ဦ", "មនុស្សទាំងអស់", "མིའི་རིགས་རྒྱུད་ གྷ",
    "人人生而自由,在尊严和权利上一律平等。𠀋 豈", "すべての人間は、が ガｶﾞ 生まれ",
    "모든 인간은 태어날 때부터 자유로우며 \u1112\u1161\u11ab",
    "ሁሉም ሰው ነጻ ሆኖ", "Ꭰ ᎠᏎ ᏴᏫ", "ᠬᠦᠮᠦᠨ ᠪᠦᠷ",
)  # fmt: skip
CHOICES = {
    "normalize": ("nfc", "nfkc", "none"),
    "keep_case": (False, True),
    "strip_accents": (False, True),
    "digits": ("keep", "zero", "drop"),
    "punctuation": ("drop", "keep"),
}
RULES = [
    {name: values[i % len(values)] for (name, values), i in zip(CHOICES.items(), row, strict=True)}
    for row in ((0, 0, 0, 0, 0), (0, 1, 1, 1, 1), (1, 0, 1, 2, 0), (1, 1, 0, 0, 1), (2, 0, 0, 2, 1),
                (2, 1, 1, 1, 0))
]  # fmt: skip


@functools.cache
def tokenizer(**rule):
    return Tokenizer(TokenizerOptions(tokenize="words", **rule))


def peer(ours):
    """Return what the exported tokenizer.json makes of a text, as a function."""
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer.from_str(json.dumps(ours.to_json(["a"])))

    def tokens(text):
        normal = theirs.normalizer.normalize_str(text) if theirs.normalizer is not None else text
        return [token for token, _ in theirs.pre_tokenizer.pre_tokenize_str(normal)]

    return tokens


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_tokens_are_the_same_as_those_of_the_exported_tokenizer(rule):
    ours = tokenizer(**rule)
    theirs = peer(ours)
    for text in SCRIPTS:
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            variant = unicodedata.normalize(form, text)
            assert ours.tokens(variant) == theirs(variant), (form, text)


# Characters that older versions of Unicode have: the peer's tables are of several versions.
OLD = [
    c for c in map(chr, itertools.chain(range(1, 0x2FA20), range(0xE0100, 0xE01F0)))
    if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs", "Co")
    and unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c)
]  # fmt: skip
MARKS = [c for c in OLD if unicodedata.combining(c)]


@pytest.mark.parametrize("rule", RULES[:4], ids=str)
def test_any_text_has_the_tokens_of_the_exported_tokenizer(rule):
    ours = tokenizer(**rule)
    theirs = peer(ours)

    @given(
        st.text(
            st.one_of(
                st.sampled_from(OLD),
                st.sampled_from(MARKS),
                st.sampled_from("\u200c\u200d"),
                st.characters(min_codepoint=1, max_codepoint=127),
            )
        )
    )
    def check(text):
        assert ours.tokens(text) == theirs(text)

    check()


def test_whitespace_is_as_it_was():
    assert Tokenizer().tokens("A,b\tC\u00a0d  e\x00") == ["A,b", "C\u00a0d", "e\x00"]


def test_every_line_feed_stays_and_no_other_separator():
    tokenized, bad = tokenizer().tokenize("A b\r\n\n\u2028c\x0b\u3000D\n".encode())
    assert (tokenized, bad) == (b" a b\n\n c d\n", -1)


@pytest.mark.parametrize(
    "raw, tokens, bad",
    [
        (b"ab\xffcd Ef", b" ab\xffcd ef", 2),
        (b"a\x00B", b" a\x00b", 1),
        (b"x \xc3", b" x \xc3", 2),
        (b"\xed\xa0\x80", b" \xed\xa0\x80", 0),  # a surrogate
        ("e\u0301\xff".encode() + b"\xf0\x90", " éÿ".encode() + b"\xf0\x90", 5),
    ],
)  # fmt: skip
def test_bytes_that_are_not_utf8_stay_in_their_token(raw, tokens, bad):
    assert tokenizer().tokenize(raw) == (tokens, bad)


def test_a_long_run_of_marks_in_the_wrong_order_is_sorted():
    """A megabyte of marks takes seconds at most, and no stack."""
    for count in (9, 100_000):
        (token,) = tokenizer(keep_case=True).tokens("a" + "\u0301\u0316" * count)
        assert token == "á" + "\u0316" * count + "\u0301" * (count - 1)
    assert unicodedata.normalize("NFC", "a" + "\u0301\u0316" * 2) == "á\u0316\u0316\u0301"


@pytest.mark.parametrize(
    "raw, tokens",
    [
        ("می‌خواهم خانه‌ها", ["می‌خواهم", "خانه‌ها"]),
        ("ශ්‍රී ලංකා क्‍ष", ["ශ්‍රී", "ලංකා", "क्‍ष"]),
        ("‌a‍ B‌, ‍", ["a", "b"]),
        ("A‌‍‌B‍" + "‍" * 5000, ["a‌‍‌b"]),
        ("日‍本a‍日", ["日", "本", "a", "日"]),
        ("a‍b­‍c", ["a‍b", "c"]),
        ("👩‍💻a", ["a"]),
    ],
)
def test_joiners_belong_to_a_word_within_it_only(raw, tokens):
    ours = tokenizer()
    assert ours.tokens(raw) == tokens == peer(ours)(raw)


@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
@pytest.mark.parametrize("selector", ["\ufe0f", "\ufe00", "\U000e0101", "\u180b"])
def test_a_variation_selector_is_no_token_and_separates_nothing(selector, form):
    for punctuation, symbols in (("drop", []), ("keep", ["❤", "♥"])):
        ours = tokenizer(normalize=form, punctuation=punctuation)
        raw = f"❤{selector} I♥{selector} 葛{selector}a{selector}b {selector}"
        expected = [*symbols[:1], "i", *symbols[1:], "葛", "ab"]
        assert ours.tokens(raw) == expected == peer(ours)(raw)
    marks = f"a\u0301{selector}\u0316e{selector}\u0301"
    ours = tokenizer(normalize=form)
    assert ours.tokens(marks) == peer(ours)(marks)


def test_options_are_recorded_and_read_back():
    ours = Tokenizer(TokenizerOptions(tokenize="words", digits="zero"))
    assert Tokenizer.of_entry(ours.entry()).options == ours.options
    assert Tokenizer().entry() == {}
    assert Tokenizer.of_entry(None).is_whitespace
    with pytest.raises(FormatError, match="stemming"):
        Tokenizer.of_entry({"tokenizer": {"stemming": True}})


# ---- pieces of words ----


WORD = st.text("ab#é水", min_size=1, max_size=8)


@given(st.lists(WORD, unique=True, max_size=20), st.lists(WORD, max_size=20))
def test_pieces_are_the_ones_of_tokenizers(words, texts):
    tokenizers = pytest.importorskip("tokenizers")
    words += character_pieces(words)[::2]
    vocabulary = {word: number for number, word in enumerate([*words, "[UNK]"])}
    model = tokenizers.models.WordPiece(
        vocabulary, unk_token="[UNK]", max_input_chars_per_word=MAX_CHARACTERS
    )
    pieces = WordPieces(words)
    for text in [*texts, "a" * (MAX_CHARACTERS + 1)]:
        expected = [token.id for token in model.tokenize(text)]
        assert pieces.of(text) == (expected if expected != [len(words)] else [])


LETTERS = st.text("abé水", min_size=1, max_size=8)


@given(st.lists(LETTERS, unique=True, max_size=20), st.lists(LETTERS, max_size=5))
def test_beginnings_are_the_longest_of_the_first_words(words, more):
    expected = [
        max((j for j, one in enumerate(words) if i != j and word.startswith(one)),
            key=lambda j: len(words[j]), default=-1)
        for i, word in enumerate(words)
    ]  # fmt: skip
    assert np.array_equal(WordPieces(words).beginnings(len(words)), expected)
    characters = character_pieces([*words, *more])
    assert not set(characters) & {*words, *more}
    found = WordPieces([*words, *characters]).beginnings(len(words))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("rule", RULES)
def test_tables_of_common_alphabets_give_the_tokens_of_complete_ones(rule):
    tokenizer = Tokenizer(TokenizerOptions("words", **rule))
    complete = tokenizer._core(ASSIGNED_END)
    form = rule["normalize"].upper().replace("NONE", "")
    pairs = unicode_tables(form, True, False, "keep", "drop").pairs[:-1].tolist()
    composed = [chr(pair >> 32) + chr(pair & 0xFFFFFFFF) for pair in pairs]
    common = [one for one in [*map(chr, range(ALPHABETS_END)), *composed] if max(one) < "\u3000"]
    random = np.random.default_rng(1)
    common += map("".join, random.choice(np.array([*map(chr, range(1, 0x3000))]), (5000, 8)))
    text = "\n".join(f"a{one}b" for one in common).encode()
    assert tokenizer.tokenize(text) == complete.tokenize(text)
    assert "complete" not in vars(tokenizer._local)
    later = "a\u3005b".encode()
    assert tokenizer.tokenize(later) == complete.tokenize(later)
