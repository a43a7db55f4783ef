"""Words that two texts use differently: planted changes, noise of seeds, errors."""

import random

import numpy as np
import pytest

import dcme_w2v as dw

TOPICS, SIZE = 12, 20
PLANTED = {f"w{topic}x3": f"w{topic + 6}x4" for topic in range(6)}  # gets contexts of the other


def text(seed, planted):
    chance = random.Random(seed)
    names = {other: word for word, other in planted.items()}
    lines = []
    for _ in range(6000):
        topic = chance.randrange(TOPICS)
        words = [f"w{topic}x{chance.randrange(SIZE)}" for _ in range(10)]
        lines.append([names.get(w, w) if chance.random() < 0.5 else w for w in words])
    return lines


def trained(lines, *seeds):
    options = {"dim": 16, "epochs": 3, "threads": 1, "sample": 0.0}
    return [dw.train(lines, seed=seed, **options) for seed in seeds]


@pytest.fixture(scope="module")
def vectors():
    return trained(text(1, {}), 1, 2, 3), trained(text(2, PLANTED), 4, 5, 6)


def test_planted_changes_come_first(vectors):
    found = dw.compare(*vectors, topn=6)
    assert {one.word for one in found} == {*PLANTED}
    for one in found:
        assert one.change > one.noise > 0
        assert all(near.word.split("x")[0] == one.word.split("x")[0] for near in one.before)
        assert one.after[0].similarity < one.before[-1].similarity
    alone = dw.compare(vectors[0][0], vectors[1][0], topn=6)
    assert len({one.word for one in alone} & {*PLANTED}) >= 4 and alone[0].noise is None


def test_seeds_of_one_text_and_turned_vectors_do_not_differ(vectors):
    own, other = vectors
    one = own[0]
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))[0]
    rows = one.vectors @ rotation
    rows[3] = 0
    assert dw.compare(one, one.changed(vectors=rows)) == []
    planted = [one.word for one in dw.compare(own, other, topn=1000)]
    seeds = [one.word for one in dw.compare(own[:2], [own[2]], topn=1000)]
    assert len(planted) == len({*planted}) > len({*PLANTED} & {*seeds})


def test_counts_decide_which_words_are_compared(vectors):
    own, other = (side[0] for side in vectors)
    both = {word: min(v.counts[v.index(word)] for v in (own, other)) for word in own}
    least = sorted(both.values())[-30]
    words = [one.word for one in dw.compare(own, other, topn=1000, min_count=int(least))]
    assert {*words} == {word for word, count in both.items() if count >= least}
    plain = [dw.Vectors(v.words, v.vectors) for v in (own, other)]  # the last occurs 5 times
    assert 16 < len(dw.compare(*plain, topn=1000, min_count=10)) < 120


def test_the_command_prints_what_the_function_returns(vectors, cli):
    names = [[], []]
    for number, side in enumerate(vectors):
        for seed, one in enumerate(side):
            one.save(f"{'ab'[number]}{seed}.safetensors")
            names[number].append(f"{'ab'[number]}{seed}.safetensors")
    sides = f"{' '.join(names[0])} --with {' '.join(names[1])}"
    found = dw.compare(*names, topn=2)
    rows = cli.rows(f"compare {sides} -k 2")
    assert [row[:3] for row in rows] == [
        [one.word, f"{one.change:.4f}", f"{one.noise:.4f}"] for one in found
    ]
    assert rows[0][3].split() == [one.word for one in found[0].before]
    assert cli(f"compare -k 2 {' '.join(names[0])} --with={' --with '.join(names[1])}")
    lines = cli(f"compare {sides} --json").splitlines()
    assert len(lines) >= len(PLANTED) and '"before": [{"word"' in lines[0]
    assert cli.rows("compare a0.safetensors b0.safetensors -k 1")[0][2] == ""
    assert cli("compare a0.safetensors a0.safetensors") == "" and "no word differs" in cli.err


def test_neighbors_in_files_of_other_seeds_are_counted(vectors, cli):
    for seed, one in enumerate(vectors[0]):
        one.save(f"a{seed}.safetensors")
    lists = [{one.word for one in v.most_similar("w0x1", topn=5)} for v in vectors[0]]
    counts = {word: sum(word in one for one in lists) for word in lists[0]}
    line = "neighbors a0.safetensors w0x1 -k 5 --stability a1.safetensors a2.safetensors"
    assert {row[1]: int(row[3]) for row in cli.rows(line)} == counts
    found = cli.json(line)["neighbors"]["w0x1"]
    assert {one["word"]: one["files"] for one in found} == counts
    assert {*map(len, cli.rows(f"{line} -k 3", stdin=None))} == {4}
    dw.Vectors(["zz", "z"], [[1], [2]]).save("z.txt")
    signed = cli.rows("neighbors a0.safetensors -k 4 --stability z.txt --", "+w0x1 -w1x1")
    assert [row[3] for row in signed] == ["1"] * 4
