"""The Gaussian mixture against scipy's densities and known clusters."""

import numpy as np
import pytest
from data import cloud
from numpy.testing import assert_allclose
from scipy.special import softmax
from scipy.stats import multivariate_normal

from dcme_w2v.scdv.mixture import Mixture, fit_mixture
from dcme_w2v.scdv.options import COVARIANCES, ScdvOptions


def fitted_to(points, clusters, **options):
    return fit_mixture(points, ScdvOptions(clusters=clusters, **options))


def densities(mixture, points):
    """Return log(weight x density), shape (n, k), by scipy."""
    logs = [multivariate_normal(mean, mixture.covariance).logpdf(points) for mean in mixture.means]
    return np.array(logs).T + np.log(mixture.weights)


def log_likelihood(mixture, points):
    """Return the mean log-density of points."""
    return np.logaddexp.reduce(densities(mixture, points), axis=1).mean()


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_posteriors_are_shares_of_the_densities(covariance):
    points, _ = cloud(spread=1.0)
    mixture = fitted_to(points, 4, covariance=covariance, iterations=5).mixture
    logs = densities(mixture, points)
    assert_allclose(mixture.posteriors(points), softmax(logs, axis=1), atol=1e-9)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_log_likelihood_rises_to_that_of_the_result(covariance):
    points, _ = cloud(spread=1.0)
    reported = []
    options = ScdvOptions(clusters=4, covariance=covariance, tolerance=1e-5)
    fitted = fit_mixture(points, options, report=lambda *args: reported.append(args))
    assert fitted.converged
    assert reported == list(enumerate(fitted.log_likelihoods))
    assert np.diff(fitted.log_likelihoods).min() > -1e-6
    exact = log_likelihood(fitted.mixture, points)
    assert fitted.log_likelihoods[-1] == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_an_iteration_equals_the_textbook_m_step(covariance):
    points, _ = cloud(spread=1.0)
    before, after = (
        fitted_to(points, 3, covariance=covariance, iterations=rounds, tolerance=0).mixture
        for rounds in (3, 4)
    )
    logs = densities(before, points)
    shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    counts = shares.sum(axis=0)
    means = shares.T @ points / counts[:, None]
    assert_allclose(after.weights, counts / len(points), atol=1e-5)
    assert_allclose(after.means, means, atol=1e-5)
    apart = points[:, None] - means
    scatter = np.einsum("nk,nki,nkj->kij", shares, apart, apart)
    wanted = scatter.sum(axis=0) / len(points)
    if covariance == "spherical":
        wanted = np.eye(len(wanted)) * np.trace(wanted) / len(wanted)
    assert_allclose(after.covariance, wanted, atol=1e-4)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_empty_components_stay_finite(covariance):
    """Two distinct points cannot fill 30 components; fitting still ends, with finite values."""
    points = np.repeat(np.array([[0, 0], [1, 3]], dtype=np.float32), 50, axis=0)
    points[:3] += np.array([[0, 8], [9, 0], [9, 9]], dtype=np.float32)
    fitted = fitted_to(points, 30, covariance=covariance, iterations=20)
    assert np.isfinite(fitted.mixture.means).all()
    posteriors = fitted.mixture.posteriors(points)
    assert_allclose(posteriors.sum(axis=1), 1)


def test_distant_points_have_finite_posteriors():
    mixture = Mixture(np.array([0.5, 0.5]), np.eye(2), 1e-4 * np.eye(2))
    assert_allclose(mixture.posteriors(np.array([[1e3, 0.0]])), [[1, 0]])
