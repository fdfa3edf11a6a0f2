"""The recommender: fitted to what there is, and to what comes later."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hogwild import HogwildRecommender
from hogwild.data.generate.ratings import GeneratedRatings
from hogwild.errors import DataError, ParameterError

MADE = GeneratedRatings(users=300, items=200, n_rows=12_000, rank=3, noise=0.4, seed=3)
FITTED = HogwildRecommender(rank=4, random_state=0, n_jobs=1).fit(MADE.columns)


def test_it_predicts_better_than_the_mean():
    users, items, ratings = MADE.columns
    predicted = FITTED.predict((users, items))
    assert np.sqrt(np.mean((predicted - ratings) ** 2)) < 0.8 * ratings.std()
    assert FITTED.score(MADE.columns) == pytest.approx(-np.sqrt(np.mean((predicted - ratings) ** 2)), rel=1e-6)
    assert 1 <= predicted.min() < predicted.max() <= 5
    assert (FITTED.predict(np.column_stack([users, items])) == predicted).all()


def test_a_matrix_and_its_columns_are_fitted_alike():
    users, items, ratings = MADE.columns
    matrix = scipy.sparse.coo_array((ratings, (users - 1, items - 1)), (300, 200))
    other = clone(FITTED).fit(matrix)
    assert other.score(matrix) == pytest.approx(FITTED.score(MADE.columns), abs=0.02)


def test_what_was_met_is_not_recommended_unless_asked_for():
    users, items, _ = MADE.columns
    met = set(items[users == 5].tolist())
    names, scores = FITTED.recommend(5, 200)
    assert len(met) + len(names) == len(np.unique(items))
    assert not met & set(names.tolist())
    assert (np.diff(scores) <= 0).all()
    assert np.allclose(FITTED.predict((np.full(len(names), 5), names)), scores, atol=1e-5)
    everything, _ = FITTED.recommend(5, 200, exclude_seen=False)
    assert len(everything) == len(np.unique(items))


def test_somebody_unknown_is_recommended_what_all_like():
    names, _ = FITTED.recommend("nobody", 3)
    best = np.argsort(-FITTED.model_.item_biases)[:3]
    assert names.tolist() == FITTED.model_.items.names[best].tolist()


def test_similar_items_point_the_same_way():
    names, cosines = FITTED.similar_items(7, 5)
    assert 7 not in names
    assert len(names) == 5
    assert (np.diff(cosines) <= 0).all()
    assert cosines[0] <= 1
    with pytest.raises(KeyError, match="no item"):
        FITTED.similar_items("x")


def test_users_and_items_can_be_added_later():
    users, items, ratings = MADE.columns
    old = (users <= 250) & (items <= 150)
    model = clone(FITTED).fit((users[old], items[old], ratings[old]))
    before = model.predict((users[old], items[old]))
    known = model.model_.users.names.tolist()
    new = ~old
    for _ in range(10):
        model.partial_fit((users[new], items[new], ratings[new]))
    assert model.model_.users.names.tolist()[: len(known)] == known
    assert set(model.model_.users.names.tolist()) == set(users.tolist())
    assert model.score((users[new], items[new], ratings[new])) > -0.9 * ratings[new].std()
    after = model.predict((users[old], items[old]))
    assert np.abs(after - before).mean() < 0.3  # nothing was forgotten
    assert items[0] in set(model.recommend(users[0], 300, exclude_seen=False)[0].tolist())
    assert items[0] not in set(model.recommend(users[0], 300)[0].tolist())


def test_the_first_part_may_be_partial():
    model = clone(FITTED).partial_fit(MADE.columns)
    assert model.score(MADE.columns) == pytest.approx(FITTED.score(MADE.columns), abs=1e-9)


def test_it_stops_when_it_gets_no_better():
    model = HogwildRecommender(
        rank=16, l2=0.001, step=0.1, max_iter=200, validation_fraction=0.1, n_iter_no_change=2, random_state=0, n_jobs=1
    ).fit(MADE.columns)
    assert model.n_iter_ < 200


def test_a_penalty_is_chosen_by_a_fit_and_kept_afterwards():
    users, items, ratings = MADE.columns
    model = clone(FITTED).set_params(l2="auto").fit((users, items, ratings))
    chosen = model.model_.training["l2"]
    assert chosen > 0
    model.partial_fit((users[:20], items[:20], ratings[:20]))
    assert model.model_.training["l2"] == chosen
    assert clone(model).get_params()["l2"] == "auto"


def test_one_seed_gives_the_same_model():
    again = clone(FITTED).fit(MADE.columns)
    assert (again.model_.user_factors == FITTED.model_.user_factors).all()
    other = clone(FITTED).set_params(random_state=1).fit(MADE.columns)
    assert (other.model_.user_factors != FITTED.model_.user_factors).any()


def test_preferences():
    users, items, _ = MADE.columns
    model = HogwildRecommender(rank=4, loss="bpr", random_state=0, n_jobs=1).fit((users, items))
    assert model.score((users, items)) > 0.7
    assert len(model.recommend(3, 5)[0]) == 5


def test_what_cannot_be_is_refused():
    with pytest.raises(NotFittedError):
        HogwildRecommender().predict(([1], [1]))
    with pytest.raises(ParameterError, match="one memory"):
        HogwildRecommender(strategy="gossip").fit(MADE.columns)
    with pytest.raises(ParameterError, match="two columns"):
        FITTED.predict([1, 2, 3])


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pandas.NA], ids=repr)
def test_a_missing_name_is_no_name(missing):
    users = np.array(["ann", missing, "bob"], object)
    with pytest.raises(DataError, match=r"row 1: the name of a user or an item is missing .*Give every user and every"):
        HogwildRecommender(rank=1).fit((users, [1, 2, 3], [1.0, 2, 3]))
    with pytest.raises(DataError, match=r"row 1: .* missing"):
        HogwildRecommender(rank=1).fit(([1, 2, 3], users, [1.0, 2, 3]))


def test_masked_names_and_ratings_are_refused():
    masked = np.ma.masked_equal([1, 2, 3], 2)
    for columns in ((masked, [1, 2, 3], [1.0, 2, 3]), ([1, 2, 3], [1, 2, 3], masked)):
        with pytest.raises(DataError, match="masked"):
            HogwildRecommender(rank=1).fit(columns)


@pytest.mark.parametrize("odd", ["much", 1j, None])
def test_ratings_that_are_no_numbers_are_refused(odd):
    with pytest.raises(DataError, match=r"columns: ratings are (finite )?numbers, and here is one that is not"):
        HogwildRecommender(rank=1).fit(([1, 2], [1, 2], [odd, odd]))


def test_a_matrix_with_more_columns_than_there_are_numbers_is_refused():
    wide = scipy.sparse.coo_array(([1.0], ([0], [2**40])), shape=(1, 2**41))
    with pytest.raises(DataError, match=r"1 x 2,199,023,255,552 .* Give columns \(users, items, ratings\)"):
        HogwildRecommender(rank=1).fit(wide)


def test_pairs_of_different_lengths_are_refused():
    model = HogwildRecommender(rank=1, random_state=0).fit(([1, 2], [1, 2], [1.0, 2]))
    for users, items in (([1, 2], [1, 2, 3]), ([1], [1, 2]), ([], [1])):
        with pytest.raises(DataError, match=f"there are {len(users)} users and {len(items)} items"):
            model.predict((users, items))


@pytest.mark.parametrize("name", ["biases", "nonnegative", "loss", "strategy"])
@pytest.mark.parametrize("wrong", [None, 1, print])
def test_options_of_other_types_are_refused(name, wrong):
    with pytest.raises(ParameterError, match=f"'{name}' parameter must be"):
        HogwildRecommender(rank=1, **{name: wrong}).fit(([1, 2], [1, 2], [1.0, 2]))
