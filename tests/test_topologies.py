"""Weights, gaps, and layouts of those who are left."""

import networkx
import numpy as np
import pytest

from hogwild import topologies
from hogwild.errors import ParameterError
from hogwild.topologies import Clique, Graph, Grid, Hypercube, OnePeerExponential, RandomRegular, Ring, Star, Torus
from hogwild.topologies.mixing_matrix import about, matrix, mixing, spectral_gap
from hogwild.topologies.topology import connected

DIRECTED = networkx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
EVERY = [*sorted(topologies.TOPOLOGIES), networkx.petersen_graph(), networkx.path_graph(8)]


@pytest.mark.parametrize("name", EVERY, ids=str)
@pytest.mark.parametrize("count", [1, 2, 4, 5, 7, 8, 13, 16])
def test_weights_of_any_number_of_members_are_doubly_stochastic(name, count):
    topology = topologies.named(name)
    members = tuple(range(0, 3 * count, 3))
    if isinstance(topology, Graph):
        members = members[: topology.nodes // 3 + 1]
    for round in range(topology.cycle(len(members))):
        assert connected(topology.links(members, round)) or isinstance(topology, OnePeerExponential)
        weights = mixing(topology, members, round)
        whole = matrix(weights)
        assert sorted(weights) == list(members)
        assert whole.min() >= 0
        np.testing.assert_allclose(whole.sum(0), 1, atol=1e-12)
        np.testing.assert_allclose(whole.sum(1), 1, atol=1e-12)
        if not topology.directed:
            np.testing.assert_array_equal(whole > 0, whole.T > 0)


@pytest.mark.parametrize("count", [4, 5, 8, 20])
def test_gap_of_a_ring_is_the_known_one(count):
    assert spectral_gap(mixing(Ring(), tuple(range(count)))) == pytest.approx(
        1 - (1 + 2 * np.cos(2 * np.pi / count)) / 3
    )


def test_gaps_that_are_known():
    assert spectral_gap(mixing(Clique(), tuple(range(9)))) == pytest.approx(1)
    # The eigenvalues of a cube of d dimensions are 1 - 2k / (d + 1).
    assert spectral_gap(mixing(Hypercube(), tuple(range(8)))) == pytest.approx(1 / 2)
    assert spectral_gap(mixing(Star(), tuple(range(8)))) == pytest.approx(1 / 8)
    assert about(OnePeerExponential(), tuple(range(8)))["spectral_gap"] == pytest.approx(1)
    assert spectral_gap(np.eye(3)) == pytest.approx(0)


def test_directed_graphs_have_columns_that_add_up_to_one():
    whole = matrix(mixing(topologies.named(DIRECTED), (0, 1, 2, 3)))
    np.testing.assert_allclose(whole.sum(0), 1)
    assert not np.allclose(whole.sum(1), 1)


def test_one_peer_exponential_averages_exactly_after_three_rounds_of_eight():
    values = np.random.default_rng(0).standard_normal(8)
    mixed = values
    for round in range(3):
        mixed = matrix(mixing(OnePeerExponential(), tuple(range(8)), round)) @ mixed
    np.testing.assert_allclose(mixed, values.mean(), atol=1e-12)


def test_a_ring_that_loses_one_is_a_smaller_ring():
    assert Ring().links((0, 1, 3, 4))[1] == {0, 3}
    assert Star().links((1, 2, 3))[2] == {1}
    assert Grid().links((0, 1, 2, 3, 4))[0] == {1, 3}  # a row of three, a row of two
    assert Torus().links((0, 1, 2, 4, 5))[0] == {1, 5}


def test_a_graph_in_pieces_is_joined():
    path = topologies.named(networkx.path_graph(5))
    assert connected(path.links((0, 1, 3, 4)))
    assert path.links((0, 1, 2, 3))[0] == {1}
    lost = topologies.named(DIRECTED).links((0, 1, 2))
    assert connected(lost)


@pytest.mark.parametrize(("topology", "workers", "says"), [
    ("hypercube", 6, "2, 4, 8"), ("torus", 7, "prime"), ("grid:4", 6, "rows"), ("random-regular:3", 7, "neighbours"),
    ("random-regular:4", 4, "neighbours"), (networkx.path_graph(3), 4, "3 nodes"),
], ids=str)  # fmt: skip
def test_numbers_that_do_not_fit_are_refused(topology, workers, says):
    with pytest.raises(ParameterError, match=says):
        topologies.named(topology).check(workers)


def test_graphs_that_are_not_connected_are_refused():
    with pytest.raises(ParameterError, match="not connected"):
        topologies.named(networkx.Graph([(0, 1), (2, 3)]))
    with pytest.raises(ParameterError, match="way from every node"):
        topologies.named(networkx.DiGraph([(0, 1), (1, 2)]))


@pytest.mark.parametrize("name", ["rnig", "ring:4", "random-regular:x", "random-regular:1", 7])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(ParameterError):
        topologies.named(name)


def test_random_graphs_go_by_their_seed():
    members = tuple(range(30))
    assert RandomRegular(4, 1).links(members) == RandomRegular(4, 1).links(members)
    assert RandomRegular(4, 1).links(members) != RandomRegular(4, 2).links(members)
    assert {len(others) for others in RandomRegular(3).links(members[:7]).values()} == {4}  # 3 is not possible
