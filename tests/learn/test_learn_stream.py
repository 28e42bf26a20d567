"""Data in pieces: what is learned from a file is, bit by bit, what is learned from the array; so it is on a cluster."""

from __future__ import annotations

import io
import pickle
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from how_many import some
from hypothesis import given, settings
from hypothesis import strategies as st

import pgcc
from pgcc.errors import EvidenceError, FormatError, PgccError
from pgcc.learn import (
    DPP,
    ChowLiu,
    CircuitMLE,
    ContinuousMixture,
    EinsumNetwork,
    HiddenTree,
    MixtureOfTrees,
    SimplePGC,
    StackedEnsemble,
)
from pgcc.learn.common.checkpoint import Checkpoint
from pgcc.learn.common.training import Run
from pgcc.learn.mixtures.encoding import Grouped
from pgcc.learn.mixtures.mixture_likelihood import MixtureLikelihood, log_likelihoods
from pgcc.learn.tables import packed_rows as rows_module
from pgcc.learn.tables.data_split import DataSplit
from pgcc.learn.tables.packed_rows import Rows, batches, hold_out, pack, pack_rows, shuffled, unpack
from pgcc.learn.tables.read_rows import read_chunks, read_rows

N = 6
NAMES = [f"x{i}" for i in range(1, N + 1)]
HMM = pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=N)
KINDS = {
    "SimplePGC": lambda: SimplePGC(2, 2, max_iter=2, batch_size=16),
    "DPP": lambda: DPP(max_iter=1),
    "ChowLiu": ChowLiu,
    "MixtureOfTrees": lambda: MixtureOfTrees(3, max_iter=4),
    "ContinuousMixture": lambda: ContinuousMixture("tree", 4, 1, max_iter=2, batch_size=16),
    "HiddenTree": lambda: HiddenTree(2, max_iter=10, batch_size=16),
    "EinsumNetwork": lambda: EinsumNetwork(2, 1, 2, max_iter=2, batch_size=16),
    "StackedEnsemble": lambda: StackedEnsemble([ChowLiu(), SimplePGC(2, 1, max_iter=1)]),
    "em": lambda: CircuitMLE(HMM.relabel(dict(zip(HMM.variables, NAMES, strict=True))), "em", max_iter=3),
    "lbfgs": lambda: CircuitMLE(pgcc.dpp(L=np.eye(N) + 0.1, names=NAMES), "lbfgs", max_iter=3),
    "adam": lambda: CircuitMLE(pgcc.dpp(L=np.eye(N) + 0.1, names=NAMES), "adam", max_iter=2),
}


def table(rows: int = 90, gaps: float = 0.1, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    half = rng.random((rows, N // 2)) < rng.choice([0.2, 0.7], (rows, 1))
    X = np.hstack([half, half ^ (rng.random(half.shape) < 0.1)]).astype(np.int8)
    X[rng.random(X.shape) < gaps] = -1
    return X


def write_csv(path, X, header=True, missing="?"):
    lines = [",".join(NAMES)] if header else []
    lines += [",".join(missing if x < 0 else str(x) for x in row) for row in X.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(params=["few", "many"])
def size(request, monkeypatch):
    """Distinct rows as they are; and as if they were too many for memory, in files and in blocks of some rows."""
    if request.param == "many":
        for module in ("tables.packed_rows", "mixtures.encoding"):
            monkeypatch.setattr(f"pgcc.learn.{module}.FEW", 30 * N)
            monkeypatch.setattr(f"pgcc.learn.{module}.BLOCK", 7 * N)
        monkeypatch.setattr(rows_module, "_IN_MEMORY", 10)
        monkeypatch.setattr(rows_module, "_WINDOW", 32)
        monkeypatch.setattr(rows_module, "_NEIGHBOURS", 4)
    return request.param


# -- the law ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_its_array(kind, size, tmp_path, monkeypatch):
    X, V = table(), table(40, seed=1)
    here = KINDS[kind]().fit(X)
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", 7 * N)
    path = write_csv(tmp_path / "data.csv", X)
    there = KINDS[kind]().fit(path)
    assert there.circuit_ == here.circuit_
    assert there.score(path) == pytest.approx(here.score(X), rel=1e-14)  # the sum of every piece is rounded
    assert (there.score_samples(str(path)) == here.score_samples(X)).all()
    assert (read_rows(X).where is None) == (size == "many")
    chosen = KINDS[kind]().fit(path, validation=write_csv(tmp_path / "valid.data", V, header=False))
    assert chosen.circuit_ == KINDS[kind]().fit(X, validation=V).circuit_


@pytest.mark.parametrize("at_a_time", [1, 2, 13, 89, 90, 1000])
def test_pieces_of_any_size(at_a_time, size, tmp_path, monkeypatch):
    X = table()
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", at_a_time * N)
    model = SimplePGC(2, 2, max_iter=1).fit(write_csv(tmp_path / "data.csv", X, missing="-1"))
    assert (model.parameters_ == SimplePGC(2, 2, max_iter=1).fit(X).parameters_).all()


@pytest.mark.parametrize("kind", ["int8", "int64", "float32", "uint8", "bool"])
def test_arrays_in_files(kind, size, tmp_path):
    X = table(gaps=0.1 if kind in ("int8", "int64", "float32") else 0.0)
    stored = np.where(X < 0, np.nan, X) if kind == "float32" else X
    np.save(tmp_path / "data.npy", stored.astype(kind))
    rows = read_rows(tmp_path / "data.npy")
    assert (rows.codes(slice(None)) == X).all()
    assert rows.names == NAMES
    assert ChowLiu().fit(tmp_path / "data.npy").circuit_ == ChowLiu().fit(X).circuit_


def test_columns_by_name(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("b,a\n1,0\n,1\n")
    rows = read_rows(path, ["a", "b", "c"])
    assert rows.codes([0, 1]).tolist() == [[0, 1, -1], [1, -1, -1]]
    turned = read_rows(read_rows(path), ["a", "b"])
    assert turned.codes([0, 1]).tolist() == [[0, 1], [1, -1]]
    with pytest.raises(EvidenceError, match="one for each of the 3 variables"):
        read_rows(turned, ["a", "b", "c"])


def test_a_first_line_of_observations_is_data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("-1,0,NA\n1,1.0,nan\n")
    rows = read_rows(path)
    assert rows.names == ["x1", "x2", "x3"]
    assert rows.codes([0, 1]).tolist() == [[-1, 0, -1], [1, 1, -1]]


def test_a_checkpoint_knows_the_data_wherever_they_are(size, tmp_path):
    X, path = table(), tmp_path / "run.npz"
    model = SimplePGC(2, 2, max_iter=2)
    parameters = model.fit(X, checkpoint=path).parameters_
    assert (model.fit(write_csv(tmp_path / "data.csv", X), checkpoint=path).parameters_ == parameters).all()
    with pytest.raises(FormatError, match="other data"):
        model.fit(X[::-1], checkpoint=path)


# -- rows ---------------------------------------------------------------------------------------------------

TABLES = st.integers(1, 40).flatmap(
    lambda n: st.tuples(st.integers(0, 2**32), st.integers(1, 60)).map(
        lambda seen: np.random.default_rng(seen[0]).integers(-1, 2, (seen[1], n)).astype(np.int8)
    )
)


@given(TABLES)
@settings(max_examples=some(50), deadline=None)
def test_packing(codes):
    assert (unpack(pack(codes), codes.shape[1]) == codes).all()
    expected, index = np.unique(codes, axis=0, return_inverse=True)
    rows = pack_rows([f"x{i + 1}" for i in range(codes.shape[1])], [codes])
    assert (unpack(rows.packed, rows.n) == expected).all()
    assert (rows.where == index.reshape(-1)).all()


@given(TABLES, st.integers(1, 9), st.integers(0, 2))
@settings(max_examples=some(50), deadline=None)
def test_rows_in_pieces(codes, step, seed):
    names = [f"x{i + 1}" for i in range(codes.shape[1])]
    rows = pack_rows(names, (codes[i : i + step] for i in range(0, len(codes), step)))
    many = Rows(names, pack(codes), None)
    for data in (rows, many):
        assert (data.codes(slice(None)) == codes).all()
        assert np.concatenate(list(data.chunks())).tolist() == codes.tolist()
        assert sum(block.counts.sum() for block in data.blocks()) == len(codes)
        inside, outside = hold_out(data, seed)
        if len(codes) >= 10:
            assert len(outside) == len(codes) // 10
            both = np.concatenate([inside.codes(slice(None)), outside.codes(slice(None))])
            assert sorted(both.tolist()) == sorted(codes.tolist())
    assert (hold_out(rows, seed)[0].codes(slice(None)) == hold_out(many, seed)[0].codes(slice(None))).all()
    part = hold_out(rows, seed)[0]
    assert (part.packed == pack_rows(names, [part.codes(slice(None))]).packed).all()
    assert (part.where == pack_rows(names, [part.codes(slice(None))]).where).all()


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 1000])
def test_random_order_in_windows(rows, monkeypatch):
    monkeypatch.setattr(rows_module, "_WINDOW", 32)
    monkeypatch.setattr(rows_module, "_NEIGHBOURS", 4)
    windows = list(shuffled(rows, np.random.default_rng(0)))
    assert max(map(len, windows)) <= 32
    assert sorted(np.concatenate(windows).tolist()) == list(range(rows))
    drawn = list(batches(rows, 5, np.random.default_rng(0)))
    assert np.concatenate(drawn).tolist() == np.concatenate(windows).tolist()
    assert {len(batch) for batch in drawn[:-1]} <= {5}


def test_windows_draw_from_everywhere(monkeypatch):
    monkeypatch.setattr(rows_module, "_WINDOW", 1 << 10)
    monkeypatch.setattr(rows_module, "_NEIGHBOURS", 1 << 3)
    for window in shuffled(1 << 14, np.random.default_rng(0)):
        assert abs(window.mean() / (1 << 14) - 0.5) < 0.1  # five standard deviations of 128 runs
        assert abs(np.corrcoef(window[:-1], window[1:])[0, 1]) < 0.15


@given(st.integers(0, 10**6), st.integers(1, 12))
@settings(max_examples=some(20), deadline=None)
def test_batches_of_many_rows_have_the_same_numbers(seed, size):
    """Tables of some rows at a time give the gradients that the table of all rows gives, to the last bit."""
    rng = np.random.default_rng(seed)
    codes, groups = table(50, 0.2, seed), [[0, 3], [1, 4], [2], [5]]
    parameters = rng.standard_normal((2, 16 + 3 + 3 + 1 + 1 + 1))
    few, many = pack_rows(NAMES, [codes]), Rows(NAMES, pack(codes), None)
    whole, parts = (Grouped(rows, groups) for rows in (few, many))
    pairs = zip(
        whole.batches(size, np.random.default_rng(1)), parts.batches(size, np.random.default_rng(1)), strict=True
    )
    for one, other in pairs:
        (value, gradient), (again, same) = (
            MixtureLikelihood(t, 2).gradient(parameters, drawn) for t, drawn in (one, other)
        )
        assert value == again
        assert (gradient == same).all()
    each = [data.each(lambda t: log_likelihoods(t, parameters))[data.rows.where] for data in (whole, parts)]
    np.testing.assert_allclose(each[0], each[1].reshape(-1), rtol=1e-12)


def test_blocks_change_only_the_last_digits(monkeypatch):
    X = table(300)
    one = MixtureOfTrees(1, max_iter=3).fit(X)
    em = CircuitMLE(HMM, "em", max_iter=3).fit(X).history_["train"]
    monkeypatch.setattr(rows_module, "BLOCK", 9 * N)
    assert MixtureOfTrees(1, max_iter=3).fit(X).trees_.probs == pytest.approx(one.trees_.probs, rel=1e-12)
    assert CircuitMLE(HMM, "em", max_iter=3).fit(X).history_["train"] == pytest.approx(em, rel=1e-12)


# -- files that are no good, and no room ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv is empty"),
        ("a,b\n", "data.csv has no rows"),
        ("1,0\n0,1\n1\n", "data.csv, line 3: 1 entry,"),
        ("1,0\n0,1\n1,1,1\n", "data.csv, line 3: 3 entries"),
        ("a,b\n0,1\n1,1\n1,2.5\n", "column 'b' of the data has 2 different values, such as 2.5"),
        ("a,a\n0,1\n", "'a' occurs twice"),
        (b"\xff\xfe0,1\n", "not text in UTF-8"),
    ],
)
@pytest.mark.parametrize("at_a_time", [1, 2, 100])
def test_bad_tables(text, message, at_a_time, tmp_path, monkeypatch):
    """The line is told, at the border of pieces too, and nothing is left of what was read before."""
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", 2 * at_a_time)
    monkeypatch.setattr(rows_module, "_IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    path = tmp_path / "data.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PgccError, match=message):
        ChowLiu().fit(path)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((2, 2), 0.5), "row 0, variable 'x1' is 0.5"),
        (np.array([[0, 1], [1, 7]]), "row 1, variable 'x2' is 7"),
        (np.zeros(3), r"of shape \(3,\)"),
        (np.zeros((0, 3)), r"of shape \(0, 3\)"),
        (np.array([["a", "b"]]), "type <U1"),
        (np.asfortranarray(np.zeros((2, 3))), "columns first"),
    ],
)
def test_bad_arrays_in_files(X, message, tmp_path):
    np.save(tmp_path / "data.npy", X)
    with pytest.raises(PgccError, match=f"data.npy.*{message}"):
        read_rows(tmp_path / "data.npy")


def test_damaged_files(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.zeros((1000, 4), np.int8))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FormatError, match="ends after 997 of its 1,000 rows"):
        read_rows(path)
    path.write_bytes(b"no array")
    with pytest.raises(FormatError, match="not an array"):
        read_rows(path)
    np.save(path, np.array([[{}]]), allow_pickle=True)
    with pytest.raises(FormatError, match="type object"):
        read_rows(path)
    np.save(path, np.zeros((5, 4), np.int8))
    with pytest.raises(EvidenceError, match="has 4 columns"):
        read_rows(path, ["a", "b"])
    for missing in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(PgccError, match="cannot be read"):
            read_rows(missing)


@pytest.mark.parametrize("name", ["data.csv", "data.npy"])
def test_a_file_that_changes(name, tmp_path, monkeypatch):
    path = tmp_path / name
    if name == "data.csv":
        write_csv(path, table())
    else:
        np.save(path, table())
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", 7 * N)
    _, chunks = read_chunks(path)
    next(chunks)
    with path.open("ab") as file:
        file.write(b"1,0,1,0,1,0\n")
    with pytest.raises(PgccError, match="was changed while it was read"):
        list(chunks)


def test_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "_IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda prefix: Path("/dev/full").open("r+b", buffering=0))  # noqa: SIM115
    with pytest.raises(PgccError, match=r"cannot be kept in a temporary file in .* No space left .* TMPDIR"):
        ChowLiu().fit(write_csv(tmp_path / "data.csv", table()))


def test_rows_in_files_are_the_same_and_leave_nothing(tmp_path, monkeypatch):
    X = table()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    whole = read_rows(X)
    monkeypatch.setattr(rows_module, "_IN_MEMORY", 0)
    filed = read_rows(X)
    assert (filed.codes(slice(None)) == X).all()
    assert filed.where.base is not None
    assert filed.fingerprint() == whole.fingerprint()
    assert list(tmp_path.iterdir()) == []


# -- on the command line ------------------------------------------------------------------------------------


def test_the_command_reads_in_pieces(tmp_path, monkeypatch, run):
    X = table()
    np.save(tmp_path / "data.npy", X)
    path = write_csv(tmp_path / "data.csv", X)
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", 7 * N)
    for source in (path, tmp_path / "data.npy", "-"):
        monkeypatch.setattr("sys.stdin", io.StringIO(path.read_text()))
        run("fit", source, "--model", "chow-liu", "-o", tmp_path / "model.npz", "--force")
        assert pgcc.load(tmp_path / "model.npz") == ChowLiu().fit(X).circuit_


def test_arrays_with_a_damaged_header(tmp_path):
    """Their header is Python text: whatever is wrong with it is a FormatError."""
    path = tmp_path / "data.npy"
    np.save(path, table())
    written = path.read_bytes()
    for change in ((b"}", b" "), (b"shape", b"shap("), (b"{", b'"""'), (b"|i1", b"|O8"), (b"False", b"Fal\0e")):
        path.write_bytes(written.replace(*change, 1))
        with pytest.raises(FormatError, match=f"{path}"):
            ChowLiu().fit(path)
        with pytest.raises(FormatError, match=f"{path}"):
            pgcc.load(path)


# -- on a cluster -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        yield client


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_learns_the_same(kind, cluster, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK", 15 * N)
    monkeypatch.setattr("pgcc.learn.trees.tree_estimators._STEPS", 3)
    X, V = table(), table(40, seed=1)
    here, there = KINDS[kind]().fit(X, validation=V), KINDS[kind]().fit(X, validation=V, cluster=cluster)
    assert there.circuit_ == here.circuit_
    if hasattr(here, "history_"):
        assert there.history_["validation"] == here.history_["validation"]


@pytest.fixture
def often(monkeypatch):
    """Blocks of some rows; states are written after every step."""
    monkeypatch.setattr(rows_module, "BLOCK", 15 * N)
    monkeypatch.setattr("pgcc.learn.trees.tree_estimators._STEPS", 3)
    monkeypatch.setattr("pgcc.learn.common.training.EVERY", 1)


class Killed(BaseException):
    pass


def stopping_after(count, method, only=lambda *args: True):
    """The method, which stops the process, as it were, when it was called so often (with some arguments only)."""
    calls = []

    def called(self, *args):
        found = method(self, *args)
        if only(self, *args):
            calls.append(args)
            if len(calls) == count:
                raise Killed
        return found

    return called


def count_epochs(monkeypatch):
    seen = []
    monkeypatch.setattr(Run, "record", lambda self, *args, record=Run.record: seen.append(record(self, *args)))
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_began_here_goes_on_there(kind, cluster, tmp_path, monkeypatch, often):
    path, X, V = tmp_path / "run", table(), table(40, seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", stopping_after(2, Checkpoint.write))
        with pytest.raises(Killed):
            KINDS[kind]().fit(X, validation=V, checkpoint=path)
    there = KINDS[kind]().fit(X, validation=V, checkpoint=path, cluster=cluster)
    assert there.circuit_ == KINDS[kind]().fit(X, validation=V).circuit_


@pytest.mark.parametrize("kind", ["SimplePGC", "StackedEnsemble", "nested"])
def test_a_run_that_began_there_goes_on_anywhere(kind, cluster, tmp_path, monkeypatch, often):
    """What workers have done is written at home."""
    make = KINDS.get(kind, lambda: StackedEnsemble([StackedEnsemble([MixtureOfTrees(2, max_iter=3)]), ChowLiu()]))
    X, V = table(), table(40, seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", stopping_after(2, Checkpoint.write, only=lambda self, *rest: self.place))
        with pytest.raises(Killed):
            make().fit(X, validation=V, checkpoint=tmp_path / "run", cluster=cluster)
    (shutil.copy if kind == "SimplePGC" else shutil.copytree)(tmp_path / "run", tmp_path / "copy")
    epochs = count_epochs(monkeypatch)
    whole, in_all = make().fit(X, validation=V), len(epochs)
    here = make().fit(X, validation=V, checkpoint=tmp_path / "run")
    assert len(epochs) - in_all < in_all  # what was done is not done again
    there = make().fit(X, validation=V, checkpoint=tmp_path / "copy", cluster=cluster)
    again = make().fit(X, validation=V, checkpoint=tmp_path / "copy", cluster=cluster)  # nothing is left to do
    assert here.circuit_ == there.circuit_ == again.circuit_ == whole.circuit_


def test_what_is_sent_are_the_rows():
    """Tables and what else was computed stay here, and come out the same there."""
    data = DataSplit(read_rows(table()), read_rows(table(40, seed=1)), named=False)
    grouped, before = data.grouped(2), len(pickle.dumps(data))
    assert len(pickle.dumps(data)) == before == len(pickle.dumps(DataSplit(data.rows, data.held_out, named=False)))
    sent = pickle.loads(pickle.dumps(data))
    for mine, theirs, again in zip(grouped, sent.grouped(2), pickle.loads(pickle.dumps(grouped)), strict=True):
        assert mine.groups == theirs.groups == again.groups
        for other in (theirs, again):
            assert all(map(np.array_equal, mine.start.table, other.start.table))


def test_legs_apart_are_legs_in_turn(cluster):
    X = table()
    model = SimplePGC(2, 2, max_iter=3, n_init=2)
    here = model.fit(X)
    parameters, history, best = here.parameters_, here.history_, here.best_epoch_
    there = model.fit(X, cluster=cluster)
    assert (there.parameters_ == parameters).all()
    assert there.best_epoch_ == best
    assert all(there.history_[name] == history[name] for name in ("leg", "train", "validation"))


def test_errors_of_a_cluster(cluster, tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(b"no checkpoint")
    with pytest.raises(FormatError, match=f"{path} is a file"):
        StackedEnsemble().fit(table(), checkpoint=path, cluster=cluster)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "0.npz").write_bytes(b"no checkpoint")
    with pytest.raises(FormatError, match=f"{folder / '0.npz'} is not a checkpoint"):
        StackedEnsemble([SimplePGC()]).fit(table(), checkpoint=folder, cluster=cluster)
    impossible = pgcc.parse("(0.5*x1 + 0.5)*x2*x3*x4*x5*x6")
    with pytest.raises(PgccError, match="probability 0"):
        CircuitMLE(impossible, "em").fit(table(), cluster=cluster)
