"""k-means against its definition."""

import numpy as np
from helpers import cloud

from dcme_w2v.numeric.kmeans import kmeans


def test_kmeans_assigns_to_the_nearest_center():
    points, own = cloud()
    centers, nearest = kmeans(points, 4, 1)
    distances = ((points[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_array_equal(nearest, distances.argmin(axis=1))
    assert len({*zip(own.tolist(), nearest.tolist(), strict=True)}) == 4


def test_an_empty_cluster_moves_to_a_point():
    points = np.repeat(np.array([[3, 4], [5, 1]], dtype=np.float32), 5, axis=0)
    centers, _ = kmeans(points, 4, 1)
    assert {tuple(row) for row in centers} == {(3, 4), (5, 1)}
