"""Ratings from files of all kinds, good and damaged."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from hogwild.data.generate.ratings import GeneratedRatings, write_ratings
from hogwild.data.ratings import Columns, Ids, Ratings, open_ratings
from hogwild.data.ratings.ratings import in_blocks
from hogwild.errors import DataError, ParameterError

TRIPLES = [(196, 242, 3.0), (186, 302, 3.5), (22, 377, 1.0), (196, 302, 5.0)]


def triples(ratings: Ratings) -> list[tuple[object, object, float]]:
    users, items, values = ratings.columns
    names = ratings.users.names[users].tolist(), ratings.items.names[items].tolist()
    return list(zip(*names, values.tolist(), strict=True))


def written(path: Path, separator: str, header: str = "", stamp: bool = True, end: str = "\n") -> Path:
    lines = [separator.join(map(str, (*triple, *([881250949] if stamp else [])))) for triple in TRIPLES]
    path.write_text(end.join([*([header] if header else []), *lines]) + end)
    return path


@pytest.mark.parametrize(
    ("name", "separator", "header"),
    [
        ("u.data", "\t", ""),
        ("ratings.dat", "::", ""),
        ("ratings.csv", ",", "userId,movieId,rating,timestamp"),
        ("plain.csv", ",", ""),
        ("typed.inter", "\t", "user_id:token\titem_id:token\trating:float\ttimestamp:float"),
        ("semicolons.csv", ";", "User-ID;ISBN;Book-Rating;when"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_files_of_movielens_and_others(tmp_path, name, separator, header, end):
    path = written(tmp_path / name, separator, header, end=end)
    assert triples(open_ratings(path)) == TRIPLES


def test_columns_in_any_order_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("when,stars given,film,who\n1,4.5,x,ann\n2,2,y,bob\n")
    columns = Columns("who", "film", "stars given")
    assert triples(open_ratings(path, columns=columns)) == [("ann", "x", 4.5), ("bob", "y", 2.0)]


def test_names_in_quotation_marks_with_separators_within(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('user,item,rating\nann,"Lock, Stock",4\n"b""ob","x",2\n')
    assert triples(open_ratings(path)) == [("ann", "Lock, Stock", 4.0), ('b"ob', "x", 2.0)]


def test_names_with_leading_zeros_are_strings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating\n007,1,4\n7,2,2\n")
    ratings = open_ratings(path)
    assert ratings.users.names.tolist() == ["007", "7"]
    assert ratings.items.names.tolist() == [1, 2]


def test_compressed_files_and_empty_lines(tmp_path):
    path = tmp_path / "u.data.gz"
    path.write_bytes(gzip.compress(b"\n" + b"".join(f"{u}\t{i}\t{r}\n\n".encode() for u, i, r in TRIPLES)))
    with pytest.raises(DataError, match="line 1"):  # what it is is told from its first line
        open_ratings(path)
    path.write_bytes(gzip.compress(b"".join(f"{u}\t{i}\t{r}\n\n".encode() for u, i, r in TRIPLES)))
    assert triples(open_ratings(path)) == TRIPLES


def test_parquet(tmp_path):
    import pyarrow
    import pyarrow.parquet

    users, items, values = zip(*TRIPLES, strict=True)
    table = pyarrow.table({"rating": values, "userId": [f"u{user}" for user in users], "movieId": items})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    ratings = open_ratings(tmp_path / "a.parquet")
    assert triples(ratings) == [(f"u{user}", item, rating) for user, item, rating in TRIPLES]
    with pytest.raises(DataError, match="no column is called 'who' among"):
        open_ratings(tmp_path / "a.parquet", columns=Columns(user="who"))
    holes = pyarrow.table({"user": [1, 2], "item": [1, None], "rating": [1.0, 2.0]})
    pyarrow.parquet.write_table(holes, tmp_path / "b.parquet")
    with pytest.raises(DataError, match="row 1, column 'item': there is nothing here"):
        open_ratings(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="cannot be read"):
        open_ratings(tmp_path / "c.parquet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\t2\t3\n1\t2\n", "line 2: here are 2 columns, and at least 3 are expected"),
        ("1\t2\t3\n1\t2\tgood\n", "line 2, column 3: 'good' is no rating"),
        ("1\t2\t3\n1\t2\tnan\n", "line 2, column 3: 'nan' is no rating"),
        ("1\t2\t3\n\t2\t3\n", "line 2, column 1: a name is missing"),
        ("a,b,c\n1,2,3\n", "line 1: no user is found among 'a', 'b', 'c'"),
        ("user,item,rating\n", "there is no rating"),
        ("", "the file is empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, message):
    (tmp_path / "u.data").write_text(text)
    with pytest.raises(DataError, match=message):
        open_ratings(tmp_path / "u.data")


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"1\t2\t3\n\xff\t2\t3\n")
    with pytest.raises(DataError, match="line 2: this is no text in UTF-8"):
        open_ratings(tmp_path / "a")


def test_a_file_without_ratings_may_be_predicted(tmp_path):
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")
    with pytest.raises(DataError, match="no rating is found"):
        open_ratings(tmp_path / "a.csv")
    assert triples(open_ratings(tmp_path / "a.csv", unlabelled=True)) == [(1, 2, 1.0)]


def test_both_parsers_read_the_same(tmp_path):
    made = write_ratings(tmp_path / "r.dat", users=300, items=200, n_rows=2_000, rank=2)
    numbers = open_ratings(tmp_path / "r.dat")
    strings = tmp_path / "s.dat"
    strings.write_text("".join(f"u{line}" for line in (tmp_path / "r.dat").read_text().splitlines(keepends=True)))
    assert [(f"u{u}", i, r) for u, i, r in triples(numbers)] == triples(open_ratings(strings))
    assert triples(numbers) == list(zip(*(column.tolist() for column in made.columns), strict=True))


def test_a_matrix_has_rows_for_users():
    matrix = scipy.sparse.csr_array(np.array([[0.0, 4.0], [2.0, 0.0], [0.0, 0.0]]))
    ratings = open_ratings(matrix)
    assert triples(ratings) == [(0, 1, 4.0), (1, 0, 2.0)]
    assert (ratings.n_users, ratings.n_items) == (3, 2)


def test_columns_must_go_together():
    with pytest.raises(DataError, match="2 users, 1 items and 2 ratings"):
        open_ratings(([1, 2], [1], [3.0, 4.0]))
    with pytest.raises(DataError, match="finite"):
        open_ratings(([1], [1], [np.inf]))
    with pytest.raises(ParameterError, match="a file, a sparse matrix, or columns"):
        open_ratings(7)


def test_names_of_another_kind_are_found():
    ids = Ids.of([3, 10, 7])
    assert ids.numbers_of(["10", "x", "3"]).tolist() == [2, -1, 0]
    assert Ids.of(["3", "x"]).numbers_of([3]).tolist() == [0]
    with pytest.raises(DataError, match="whole numbers so far"):
        ids.with_more(["x"])


@pytest.mark.parametrize("names", [[5, 2, 9], ["ä", "", "long name"]])
def test_names_are_kept_in_files(names):
    ids = Ids.of(names).with_more([*names, names[0]])
    again = Ids.from_arrays(ids.arrays("user"), "user")
    assert again.names.tolist() == sorted(names)


@pytest.mark.parametrize("users", [np.array([1, 2**63], np.uint64), [1, 2**63], np.array([1, 2**63], object)])
def test_numbers_too_large_for_a_number_are_names(users):
    ratings = Ratings.of(users, [0, 0])
    assert sorted(ratings.users.names.tolist()) == ["1", str(2**63)]
    assert ratings.users.numbers_of([2**63, 1]).tolist() == ratings.users.numbers_of([str(2**63), "1"]).tolist()
    assert sorted(ratings.users.numbers_of([2**63, 1]).tolist()) == [0, 1]
    assert Ids.of([1, 2]).numbers_of([str(2**64), 2**64, 2]).tolist() == [-1, -1, 1]
    with pytest.raises(DataError, match="names are whole numbers so far"):
        Ids.of([1, 2]).with_more([2**64])


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_a_name_that_is_not_finite_is_refused(odd):
    with pytest.raises(DataError, match=r"row 1: the name (nan|-?inf) of a user or an item is not finite"):
        Ratings.of(np.array([1.0, odd]), [0, 0])


def test_generated_ratings_are_like_those_of_films():
    made = GeneratedRatings(users=600, items=400, n_rows=20_000, seed=1)
    users, items, ratings = made.columns
    assert len(set(zip(users.tolist(), items.tolist(), strict=True))) == 20_000
    assert set(ratings.tolist()) == {1, 2, 3, 4, 5}
    counts = np.sort(np.bincount(items))[::-1]
    assert counts[:40].sum() > 0.3 * 20_000  # a tenth of the items has a third of the ratings
    assert 0.6 < made.floor < 1.0 < ratings.std()
    assert (GeneratedRatings(users=600, items=400, n_rows=20_000, seed=1).ratings == ratings).all()
    with pytest.raises(ParameterError, match="at most 50 can be rated"):
        GeneratedRatings(10, 10, 51)


def test_blocks_have_every_rating_once_and_few_users_and_items_each():
    ratings = GeneratedRatings(users=600, items=400, n_rows=20_000, seed=1).data.split(0.1, seed=0)[0]
    blocked = ratings.with_data(lambda data: in_blocks(data, sides=4, seed=0))
    assert sorted(triples(blocked)) == sorted(triples(ratings)) != triples(blocked)
    walk = blocked.data.epoch(seed=0, number=1)
    assert len(walk) >= 16
    visited = np.concatenate([walk[k].rows.labels[walk[k].order] for k in range(len(walk))])
    assert sorted(visited) == sorted(ratings.data.labels())
    users, _, _ = blocked.columns
    assert len(np.unique(users[: 20_000 // 16])) < 600 / 2
