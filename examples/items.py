"""Vectors of products from baskets: no words, no order, the same training."""

import random

import dcme_w2v as dw

draw = random.Random(1)
GROUPS, PRODUCTS, BASKETS = 20, 30, 6000

# A basket has products of one group, and two others at random.
names = [[f"group{group}_product{i}" for i in range(PRODUCTS)] for group in range(GROUPS)]
everything = [name for group in names for name in group]
baskets = [draw.sample(draw.choice(names), 6) + draw.sample(everything, 2) for _ in range(BASKETS)]
for basket in baskets:
    draw.shuffle(basket)

# A window as wide as a basket, since order means nothing.
vectors = dw.train(baskets, dim=32, window=8, window_mode="fixed", epochs=10, threads=1)

print(*(found.word for found in vectors.most_similar("group3_product7", topn=5)))

same = total = 0
for name, near in zip(
    vectors.words, vectors.most_similar_batch(vectors.words, topn=10), strict=True
):
    total += len(near)
    same += sum(found.word.split("_")[0] == name.split("_")[0] for found in near)
print(f"neighbors in the same group: {same / total:.0%}")
