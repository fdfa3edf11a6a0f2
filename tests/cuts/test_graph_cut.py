"""Graph cuts: exact where they can be, the same with every strategy, and kept in files."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import references
from hogwild import Averaging, Cosine, GraphCut, Hogwild, Locked, RoundRobin, load, minimise
from hogwild.data.graphs import Graph, grid
from hogwild.errors import DataError, ParameterError
from hogwild.problems.graph_cut_rounding import Edges, round_cut
from hogwild.rules.sklearn_sgd import Sequential

KINDS = ("random", "grid", "communities", "regular")


def graph(seed):
    """A small graph with random weights, and some seeds in each part."""
    random = np.random.default_rng(seed)
    nodes = int(random.integers(6, 40))
    kind = KINDS[seed % 4]
    if kind == "random":
        made = nx.gnp_random_graph(nodes, random.uniform(0.1, 0.5), seed=seed)
    elif kind == "grid":
        made = nx.convert_node_labels_to_integers(nx.grid_2d_graph(*(int(n) for n in random.integers(3, 8, 2))))
    elif kind == "communities":
        made = nx.planted_partition_graph(2, max(4, nodes // 2), 0.6, 0.15, seed=seed)
    else:
        made = nx.random_regular_graph(3, nodes + nodes % 2, seed=seed)
    edges = np.array(made.edges)
    weights = random.exponential(size=len(edges)) if seed % 8 < 4 else random.integers(1, 6, len(edges)).astype(float)
    chosen = random.permutation(made.number_of_nodes())[: 2 * random.integers(1, 4)]
    return edges, weights, {int(node): at % 2 for at, node in enumerate(chosen)}


def least(edges, weights, seeds):
    """The minimum cut, by the maximum flow between two nodes more to which the seeds are tied."""
    flow = nx.Graph()
    flow.add_nodes_from(["0", "1"])
    for (one, other), weight in zip(edges.tolist(), weights.tolist(), strict=True):
        flow.add_edge(one, other, capacity=weight)
    for node, part in seeds.items():
        flow.add_edge(node, str(part))  # of endless capacity
    return nx.minimum_cut_value(flow, "0", "1")


@pytest.mark.parametrize("kind", range(4), ids=KINDS)
def test_two_parts_are_a_minimum_cut(kind):
    for seed in range(kind, 200, 4):
        edges, weights, seeds = graph(seed)
        model = minimise(GraphCut((*edges.T, weights), seeds), strategy="serial").model
        assert model.cut == pytest.approx(least(edges, weights, seeds), rel=1e-6), f"graph {seed}"
        assert all(model.parts[node] == part for node, part in seeds.items())
        assert Edges(*edges.T, weights).cut(model.parts) == pytest.approx(model.cut, rel=1e-6)


def planted(parts, nodes=90):
    """Nodes in parts that hold together, with seeds in each: so many that it does not pay to cut them off."""
    random = np.random.default_rng(0)
    truth = np.arange(nodes) % parts
    near = truth[:, None] == truth
    weights = np.triu(random.random((nodes, nodes)) < np.where(near, 0.4, 0.04), 1) * random.uniform(
        0.5, 1.5, near.shape
    )
    return scipy.sparse.csr_array(weights), truth, {node: int(truth[node]) for node in range(nodes // 3)}


STRATEGIES = (Hogwild(2), Averaging(2), Locked(2), RoundRobin(2))
CASES = [("sgd", strategy) for strategy in STRATEGIES[: None if references.ALL else 2]]
CASES += [("adagrad", strategy) for strategy in STRATEGIES[: None if references.ALL else 0]]


@pytest.mark.parametrize(("rule", "strategy"), CASES, ids=repr)
def test_every_strategy_comes_to_the_serial_optimum(rule, strategy):
    problem = GraphCut(*planted(3)[::2])
    serial, other = (
        minimise(problem, rule, Cosine(0.1), way, budget=200).result["relaxed_cut"] for way in ("serial", strategy)
    )
    assert other == pytest.approx(serial, rel=0.01)


def test_planted_parts_are_found():
    weights, truth, seeds = planted(4)
    assert (minimise(GraphCut(weights, seeds), strategy="serial").model.parts == truth).all()


def test_an_edge_is_a_subgradient():
    """Away from where ends are equal, the kernel moves the shares against the numerical slope of the loss."""
    problem = GraphCut(([0, 1, 2], [1, 2, 3], [2.0, 1.0, 3.0]), {0: 0, 3: 1})
    from hogwild.rules import SGD

    (state,) = problem.start(SGD())
    shares = np.array([[1, 0], [0.7, 0.3], [0.45, 0.55], [0, 1]], np.float32)
    state[:, 0] = shares.reshape(-1)
    chunk, small = problem.data.in_order()[0], 1e-3

    def loss(at):
        return problem.measure(chunk, (at.reshape(-1, 1).astype(np.float32),))[0]

    slope = np.zeros((4, 2))
    for node in (1, 2):
        for part in range(2):
            up, down = shares.copy(), shares.copy()
            up[node, part] += small
            down[node, part] -= small
            slope[node, part] = (loss(up) - loss(down)) / (2 * small)
    slope -= slope.mean(axis=1, keepdims=True)  # within the simplex
    problem.kernel(SGD(), "free", 1)(chunk, np.full(3, small, np.float32), (state,), problem.sync_buffer("free"))
    np.testing.assert_allclose((shares - state.reshape(4, 2)) / small, slope, atol=0.01)


def test_shares_stay_in_the_simplex():
    run = minimise(GraphCut(*planted(5)[::2]), strategy=Hogwild(2), budget=20)
    assert (run.model.shares >= 0).all()
    np.testing.assert_allclose(run.model.shares.sum(axis=1), 1, atol=1e-5)


def test_costs_are_like_edges_to_the_parts():
    random = np.random.default_rng(3)
    edges, weights, costs = np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), random.random(4), random.random((4, 2))
    model = minimise(GraphCut((*edges.T, weights), costs=costs), strategy="serial").model
    everything = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    best = min(Edges(*edges.T, weights).cut(parts) + costs[np.arange(4), parts].sum() for parts in everything)
    assert model.cut == pytest.approx(best, rel=1e-5)


def test_thresholds_of_more_parts_are_no_worse_than_the_largest_share():
    weights, _, seeds = planted(3)
    run = minimise(GraphCut(weights, seeds), strategy="serial", budget=3)
    matrix = weights.tocoo()
    edges = Edges(matrix.row, matrix.col, matrix.data)
    assert edges.cut(round_cut(run.model.shares, edges)) <= edges.cut(run.model.shares.argmax(axis=1))


def test_a_model_is_kept(tmp_path):
    (tmp_path / "a.edges").write_text("ann,bob,2\nbob cid 1 # a weak tie\n\ncid\tdan\t2\n")
    model = minimise(GraphCut(tmp_path / "a.edges", {"ann": 0, "dan": 1}), strategy="serial").model
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.names == ("ann", "bob", "cid", "dan")
    assert (again.parts == [0, 0, 1, 1]).all()
    assert again.cut == 1.0
    (tmp_path / "who").write_text("dan\nbob\n")
    assert again.answer(tmp_path / "who").values.tolist() == [1, 0]
    (tmp_path / "who").write_text("bob\neve\n")
    with pytest.raises(DataError, match="who, line 2: there is no node 'eve'"):
        again.answer(tmp_path / "who")


def test_a_sample_is_around_the_seeds():
    problem = GraphCut(grid(np.zeros((40, 40))), {0: 0, 1: 1})
    near = problem.sample(50, 0)
    assert near.data.n_rows == 50
    assert near.graph.other.max() < 10 * 40


def test_a_run_goes_on(tmp_path):
    problem = GraphCut(*planted(3)[::2])
    whole = minimise(problem, strategy="serial", budget=20)
    minimise(problem, strategy="serial", budget=20, checkpoint=tmp_path)
    again = minimise(problem, strategy="serial", budget=20, checkpoint=tmp_path, resume=True)
    assert again.result["loss"] == whole.result["loss"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a b 1\na\n", "line 2: there are 1 fields"),
        ("a b x\n", "line 1: the weight 'x' is not a number"),
        ("a b -1\n", "line 1: the weight -1 is negative"),
        ("a b inf\n", "line 1: the weight inf is negative or not finite"),
        ("# nothing\n", "there are no edges in the file"),
        ("a a 1\n", "there is no edge between two nodes"),
        (b"a b\n\xff\xfe c\n", "line 2: this is not UTF-8 text"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told(tmp_path, text, told):
    (tmp_path / "a.edges").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=told):
        GraphCut(tmp_path / "a.edges", {"a": 0, "b": 1})


@pytest.mark.parametrize("name", ["a.npz", "a.NPZ"])
def test_a_matrix_in_a_file(tmp_path, name):
    weights = scipy.sparse.csr_array(np.array([[0, 2.0, 0], [2.0, 0, 1.0], [0, 1.0, 0]]))
    with (tmp_path / name).open("wb") as file:
        scipy.sparse.save_npz(file, weights)
    cut = GraphCut(tmp_path / name, {0: 0, 2: 1})
    assert (cut.graph.nodes, cut.graph.name) == (3, str(tmp_path / name))
    with (tmp_path / name).open("wb") as file:
        scipy.sparse.save_npz(file, weights * scipy.sparse.csr_array([[0, 2.0, 0], [1.0, 0, 1.0], [0, 1.0, 0]]))
    with pytest.raises(DataError, match=rf"{name}: the graph is not symmetric"):
        GraphCut(tmp_path / name, {0: 0, 2: 1})


EDGE = [0], [1], [1.0]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: GraphCut(EDGE), "two parts at least"),
        (lambda: GraphCut(EDGE, {0: 0, 1: 0}), "two parts at least"),
        (lambda: GraphCut(EDGE, {0: 0, 7: 1}), "there is no node 7"),
        (lambda: GraphCut(EDGE, {0: -1, 1: 1}), "Parts are numbered from 0"),
        (lambda: GraphCut(EDGE, [0, 1, 2]), "for each of the 2 nodes"),
        (lambda: GraphCut(EDGE, costs=[[1.0]]), "two parts at least"),
        (lambda: GraphCut(EDGE, costs=[[1.0, np.nan], [0, 1]]), "finite number for each of the 2 nodes"),
        (lambda: GraphCut("no", "such"), "there is no such file|No such file"),
        (lambda: GraphCut(([0], [-1], [1.0])), "there is no node -1"),
        (lambda: GraphCut(([0.5], [1], [1.0])), "no whole numbers"),
        (lambda: GraphCut(3), "must be a sparse matrix"),
        (lambda: GraphCut(scipy.sparse.csr_array([[0, 1.0], [2.0, 0]])), "not symmetric"),
        (lambda: minimise(GraphCut(EDGE, {0: 0, 1: 1}), Sequential()), "cannot keep shares in the simplex"),
        (lambda: minimise(GraphCut(EDGE, {0: 0, 1: 1}), test="x"), "there is no test data for GraphCut"),
        (lambda: grid(np.zeros(3)), "a picture of the shape"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_told(make, told):
    with pytest.raises((DataError, ParameterError), match=told):
        make()


def test_both_triangles_count_once():
    weights = scipy.sparse.csr_array(np.array([[0, 2.0, 0], [2.0, 0, 1.0], [0, 1.0, 0]]))
    for matrix in (weights, scipy.sparse.triu(weights), scipy.sparse.tril(weights)):
        made = Graph.of_matrix(matrix)
        assert sorted(zip(made.one, made.other, made.weights, strict=True)) == [(0, 1, 2.0), (1, 2, 1.0)]
