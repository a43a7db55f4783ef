"""k-means against its definition."""

import numpy as np
from helpers import cloud

from dcme_w2v.numeric.kmeans import kmeans


def test_as_many_components_as_points():
    points, _ = cloud(count=7)
    centres, nearest = kmeans(points, 7, 1)
    assert sorted(nearest) == list(range(7))
    np.testing.assert_allclose(centres[nearest], points, rtol=1e-6)


def test_kmeans_assigns_to_the_nearest_centre():
    points, own = cloud()
    centres, nearest = kmeans(points, 4, 1)
    distances = ((points[:, None] - centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(nearest, distances.argmin(axis=1))
    assert len({*zip(own.tolist(), nearest.tolist(), strict=True)}) == 4


def test_kmeans_stops_after_the_maximum_of_iterations():
    points, _ = cloud()
    (early, _), (late, _) = (kmeans(points, 9, 1, rounds=rounds) for rounds in (1, 50))
    assert not np.array_equal(early, late)
    again, nearest = kmeans(points, 9, 1, rounds=1)
    np.testing.assert_array_equal(early, again)
    means = [points[nearest == k].mean(axis=0) for k in range(9)]
    np.testing.assert_allclose(again, means, atol=1e-4)


def test_an_empty_cluster_moves_to_a_point():
    points = np.repeat(np.array([[3, 4], [5, 1]], dtype=np.float32), 5, axis=0)
    centres, _ = kmeans(points, 4, 1)
    assert {tuple(row) for row in centres} == {(3, 4), (5, 1)}
