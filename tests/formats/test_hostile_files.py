"""Files that lie, never end, or are no files: refused in bounded memory, and nothing is lost or left behind."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

import pgcc
import pgcc.learn
from pgcc.data.tables import MOST_COLUMNS
from pgcc.errors import EvidenceError, FormatError, PgccError
from pgcc.formats import FORMATS
from pgcc.formats import io as formats_io
from pgcc.formats.io import number_in, replacing
from pgcc.formats.logic import MANY_VARIABLES
from pgcc.learn import ChowLiu, SimplePGC

BETA = pgcc.parse("z/2 + 1/2")
WRITTEN = (".pgc", ".npz")


# -- files without an end -----------------------------------------------------------------------------------


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(formats_io, "MOST_STREAMED", 1 << 21)
    monkeypatch.setattr(formats_io, "LONGEST_LINE", 1 << 21)


@pytest.mark.parametrize("extension", [*FORMATS, ".PGC"])
def test_a_file_that_never_ends(tmp_path, extension, small_limits):
    path = tmp_path / f"endless{extension}"
    path.symlink_to("/dev/zero")
    tracemalloc.start()
    with pytest.raises(FormatError, match="more than 2,097,152 bytes"):
        pgcc.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 << 21


@pytest.mark.parametrize("option", ["vtree", "weights"])
def test_files_that_options_name(tmp_path, option, small_limits):
    path = tmp_path / "x.sdd"
    path.write_text("sdd 1\nL 0 0 1\n")
    with pytest.raises(FormatError, match="more than 2,097,152 bytes"):
        pgcc.load(path, **{option: "/dev/zero"})
    with pytest.raises(FormatError, match="there is no such file"):
        pgcc.load(path, **{option: tmp_path / "missing"})
    with pytest.raises(FormatError, match="is text or a path, not 3"):
        pgcc.load(path, **{option: 3})


@pytest.mark.parametrize("extension", FORMATS)
def test_a_regular_file_that_is_too_long_is_not_read(tmp_path, extension):
    path = tmp_path / f"sparse{extension}"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"more than .* bytes, which is the limit"):
        pgcc.load(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["x.csv", "x.npy", "x.data"])
def test_tables_that_never_end(tmp_path, name, small_limits, fail):
    path = tmp_path / name
    path.symlink_to("/dev/zero")
    with pytest.raises(PgccError, match=name):
        ChowLiu().fit(path)
    with pytest.raises(PgccError, match=name):
        ChowLiu().fit([[0, 1], [1, 0]]).score(path)
    assert name in fail("score", "--expr", "a", path)
    assert name in fail("fit", path, "-o", tmp_path / "model.npz")


def test_standard_input_that_never_ends(small_limits, fail, monkeypatch):
    monkeypatch.setattr("pgcc.cli.files.MOST_STREAMED", 1 << 20)
    with open("/dev/zero") as zero:
        monkeypatch.setattr(sys, "stdin", zero)
        assert "standard input has more than" in fail("query", "-")
        assert "standard input, line 1: more than" in fail("score", "--expr", "a", "-")
        assert "standard input, line 1: more than" in fail("fit", "-", "-o", "model.npz")


# -- headers that lie ---------------------------------------------------------------------------------------


def refusal(read, path) -> PgccError | None:
    try:
        read(path)
    except PgccError as error:
        return error
    return None


def header_of(shape, kind="|i1", version=(1, 0)) -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    pad = -(10 + len(text) + 1) % 64
    text += b" " * pad + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(text).to_bytes(2, "little") + text


LYING = [(50, 10**8), (10**8, 50), (10**12, 1), (1, 10**12), (2, 3), (10**30, 10**30)]


@pytest.mark.parametrize("shape", LYING)
def test_an_array_that_claims_more_than_it_has(tmp_path, shape):
    path = tmp_path / "x.npy"
    path.write_bytes(header_of(shape))
    tracemalloc.start()
    for learn in (ChowLiu().fit, SimplePGC(1, 1).fit):
        with pytest.raises(FormatError, match=r"x\.npy"):
            learn(path)
    with pytest.raises(FormatError, match=r"x\.npy"):
        pgcc.load(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


@pytest.mark.parametrize("shape", LYING)
def test_and_comes_through_a_pipe(tmp_path, shape):
    path = tmp_path / "x.npy"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(header_of(shape) + b"\1\0\1",))
    writer.start()
    with pytest.raises(FormatError, match=r"x\.npy ends after [013] of its|is not an array"):
        ChowLiu().fit(path)
    writer.join()


def test_an_array_comes_through_a_pipe(tmp_path):
    path, X = tmp_path / "x.npy", np.random.default_rng(0).integers(0, 2, (500, 4)).astype(np.int8)
    os.mkfifo(path)
    np.save(buffer := io.BytesIO(), X)
    writer = threading.Thread(target=path.write_bytes, args=(buffer.getvalue(),))
    writer.start()
    assert ChowLiu().fit(path).circuit_ == ChowLiu().fit(X).circuit_
    writer.join()


def test_too_many_columns(tmp_path):
    path = tmp_path / "x.npy"
    with open(path, "wb") as file:
        file.write(header_of((1, MOST_COLUMNS + 1)))
        file.truncate(file.tell() + MOST_COLUMNS + 1)
    with pytest.raises(EvidenceError, match="columns"):
        ChowLiu().fit(path)
    with pytest.raises(EvidenceError, match="columns"):
        ChowLiu().fit(np.broadcast_to(np.int8(0), (2, 10**9)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["nnf 1 0 100000\nA 0\n", "o 1 0\nt 2 0\n1 2 100000 0\n", "nnf 1 0 99999999999\nA 0\n"]
)
def test_a_circuit_that_claims_more_variables_than_it_can_mention(tmp_path, text):
    path = tmp_path / "x.nnf"
    path.write_text(text)
    with pytest.raises(FormatError, match="variables"):
        pgcc.load(path)
    path.write_text(text.replace("100000", "1").replace("99999999999", "1"))
    with pytest.raises(FormatError, match="variables"):
        pgcc.load(path, variables=100_000)
    assert len(pgcc.load(path, variables=MANY_VARIABLES).variables) == MANY_VARIABLES


KINDS = ["O", "|O", "V8", "<M8[s]", "S4", "<U0", "|V0", "<c16", "[('a', '<i4')]", "<f8", "|b1", "nonsense"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 2), (), (4,), (2, 2, 2), (0, 0), (-1, 2), (10**9, 0), (2, 10**12)])
def test_arrays_of_every_type_and_shape(tmp_path, kind, shape):
    """Loaded or refused with the name of the file; never anything else."""
    for content in (b"", b"\0" * 8, b"\xff" * 64):
        path = tmp_path / "x.npy"
        path.write_bytes(header_of(shape, kind) + content)
        for read in (pgcc.load, ChowLiu().fit):
            error = refusal(read, path)
            assert error is None or "x.npy" in str(error) or isinstance(error, EvidenceError)
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr("L.npy", path.read_bytes())
            archive.writestr("names.npy", path.read_bytes())
        with pytest.raises(FormatError, match=r"x\.npz"):
            pgcc.load(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.npz", "estimator.npz"])
def test_a_directory_of_a_zip_that_lies_about_sizes(tmp_path, name):
    """An array of 300 million zeros, in 300 kB, that claims to have a hundred bytes: no more are unpacked."""
    path = tmp_path / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("header.npy" if name == "x.npz" else "__estimator__.npy", "w", force_zip64=False) as file:
            for _ in range(300):
                file.write(bytes(10**6))
        (entry,) = archive.infolist()
    whole = path.read_bytes()
    path.write_bytes(whole.replace(struct.pack("<I", entry.file_size), struct.pack("<I", 100)))
    assert len(whole) < 400_000
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"x\.npz|estimator\.npz"):
        (pgcc.load if name == "x.npz" else pgcc.learn.load)(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**7


def test_packed_files(tmp_path):
    for extension, format in FORMATS.items():
        if format.is_written:
            names = {name: f"x{i}" for i, name in enumerate(BETA.variables, 1)}
            circuit = BETA.relabel(names) if extension != ".nnf" else pgcc.parse("x1*(x2 + ~x2) + ~x1*x2")
            if extension == ".bif":
                circuit = pgcc.builders.bayesian_network({"a": 0.25, "b": (["a"], {0: 0.5, 1: 0.75})})
            path = tmp_path / f"x{extension}.GZ"
            pgcc.save(circuit, path)
            unpacked = tmp_path / f"y{extension}"
            unpacked.write_bytes(gzip.decompress(path.read_bytes()))
            assert pgcc.load(path) == pgcc.load(unpacked)
    assert (tmp_path / "x.vtree").exists()
    (tmp_path / "kernel.csv.gz").write_bytes(gzip.compress(b"1,0.5\n0.5,1\n"))
    assert pgcc.load(tmp_path / "kernel.csv.gz") == pgcc.dpp(L=[[1.0, 0.5], [0.5, 1.0]])
    for content in (b"", b"text", gzip.compress(b"z/2 + 1/2")[:-5], gzip.compress(b"z/2 + 1/2") + b"x"):
        (tmp_path / "bad.pgc.gz").write_bytes(content)
        with pytest.raises(pgcc.PgccError, match=r"bad\.pgc\.gz"):
            pgcc.load(tmp_path / "bad.pgc.gz")
    with pytest.raises(FormatError, match=r"cannot write the format '\.doc'"):
        pgcc.save(BETA, tmp_path / "x.doc.gz")


def test_a_packed_file_that_is_a_bomb(tmp_path):
    path = tmp_path / "bomb.pgc.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(300):
            file.write(b" " * 10**6)
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"bomb\.pgc\.gz, unpacked, has more than 67,108,864 bytes"):
        pgcc.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**8


@pytest.mark.parametrize("shape", ["(20, True)", "(True, 2)", "(2.0, 2)", "(2, None)", "20"])
def test_shapes_of_other_types(tmp_path, shape):
    path = tmp_path / "x.npy"
    path.write_bytes(header_of((20, 1), "<i8").replace(b"(20, 1)", shape.encode()) + bytes(160))
    for read in (pgcc.load, ChowLiu().fit):
        with pytest.raises(FormatError, match=r"x\.npy"):
            read(path)


def test_long_cells_take_linear_time(tmp_path):
    """With a million digits, quadratic time would be days."""
    digits = "1" + "9" * 10**6
    for word in (f"{digits}/3", f"{digits}x", f".{digits}/", f"1e{digits}", f"{digits}.{digits}e"):
        assert number_in(word) is None
        path = tmp_path / "x.csv"
        path.write_text(f"{word},1\n1,1\n")
        with pytest.raises(FormatError, match=r"x\.csv"):
            pgcc.load(path)
        path = tmp_path / "x.uai"
        path.write_text(f"MARKOV\n1\n2\n1\n1 0\n2 {word} 1\n")
        with pytest.raises(FormatError, match=r"x\.uai"):
            pgcc.load(path)


@pytest.mark.parametrize("extension", WRITTEN)
def test_every_way_to_cut_a_file_or_to_change_a_byte(tmp_path, extension):
    path = tmp_path / f"x{extension}"
    pgcc.save(pgcc.dpp(L=[[2.0, 1.0], [1.0, 2.0]]) * pgcc.parse("a/3 + 2/3"), path)
    whole = path.read_bytes()
    rng, refused = np.random.default_rng(0), 0
    cuts = [whole[: int(k)] for k in np.linspace(0, len(whole) - 1, 60)]
    changed = []
    for _ in range(300):
        data = bytearray(whole)
        data[rng.integers(len(data))] = rng.integers(256)
        changed.append(bytes(data))
    for data in cuts + changed:
        path.write_bytes(data)
        error = refusal(pgcc.load, path)
        assert error is None or f"x{extension}" in str(error)
        refused += error is not None
    assert refused > 60


def test_names_that_are_no_names(tmp_path):
    for wrong in (3, None, 2.5, [], {}, object(), ("a", "b")):
        with pytest.raises(FormatError, match="is text or a path, not"):
            pgcc.load(wrong)
        with pytest.raises(FormatError, match="is text or a path, not"):
            pgcc.save(BETA, wrong)
    with pytest.raises(FormatError, match="cannot be the name"):
        ChowLiu().fit("a\0b.csv")
    path = os.fsencode(tmp_path / "x.pgc")
    pgcc.save(BETA, path)
    assert pgcc.load(path) == BETA


# -- what is no regular file --------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", WRITTEN)
def test_a_device_is_written_into(tmp_path, extension, run):
    """As root, a rename would replace it."""
    path = tmp_path / f"null{extension}"
    path.symlink_to("/dev/null")
    before = os.stat("/dev/null")
    pgcc.save(BETA, path)
    run("convert", "--expr", "a", path)
    run("compile", "--expr", "a/2 + 1/2", "-o", "/dev/null", "--force")
    run("compile", "--expr", "a/2 + 1/2", "-o", "/dev/null")  # nothing is replaced
    after = os.stat("/dev/null")
    assert stat.S_ISCHR(after.st_mode)
    assert (before.st_ino, before.st_rdev) == (after.st_ino, after.st_rdev)
    assert path.is_symlink()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_of_our_own(tmp_path):
    path = tmp_path / "device.pgc"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # another /dev/null
    except PermissionError:
        pytest.skip("this container lets nobody make devices")
    pgcc.save(BETA, path)
    assert stat.S_ISCHR(os.stat(path).st_mode)


@pytest.mark.parametrize("extension", WRITTEN)
def test_a_pipe_is_written_into(tmp_path, extension):
    path, read = tmp_path / f"pipe{extension}", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    pgcc.save(BETA, path)
    reader.join()
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    plain = tmp_path / f"plain{extension}"
    plain.write_bytes(read[0])
    assert pgcc.load(plain) == BETA
    writer = threading.Thread(target=path.write_bytes, args=(read[0],))
    writer.start()
    assert pgcc.load(path) == BETA
    writer.join()


def test_a_socket_is_refused(tmp_path, monkeypatch, fail):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.pgc")
        with pytest.raises(FormatError, match=r"s\.pgc cannot be written: it is a socket"):
            pgcc.save(BETA, "s.pgc")
        assert "it is a socket" in fail("convert", "--expr", "a", "s.pgc", "--force")
        assert stat.S_ISSOCK(os.stat("s.pgc").st_mode)


# -- drafts -------------------------------------------------------------------------------------------------

SAVES = """
import os, sys, signal
from pathlib import Path
from pgcc.formats.io import number_in, replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def begin_to_save(path):
    child = subprocess.Popen(
        [sys.executable, "-c", SAVES, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "writing\n"
    return child


def test_drafts_of_killed_saves_are_removed_and_others_are_not(tmp_path):
    path, other = tmp_path / "x[1].pgc", tmp_path / "x[1].pgc.more.pgc"
    killed, going, elsewhere = begin_to_save(path), begin_to_save(path), begin_to_save(other)
    killed.kill()
    killed.wait()
    assert len(list(tmp_path.iterdir())) == 3
    unlike = tmp_path / f".{path.name}.notes.tmp"
    unlike.touch()
    pgcc.save(BETA, path)
    left = {p.name for p in tmp_path.iterdir()}
    assert len(left) == 4  # the file, ours, and the two drafts that are being written
    assert {path.name, unlike.name} < left
    for child in (going, elsewhere):
        child.communicate("")
        assert child.returncode == 0
    assert path.read_bytes() == other.read_bytes() == b"half"
    assert {p.name for p in tmp_path.iterdir()} == {path.name, other.name, unlike.name}


def test_many_save_the_same_file_at_a_time(tmp_path):
    path, errors = tmp_path / "x.pgc", []
    texts = [f"{i}*z" for i in range(4)]

    def save_often(text):
        try:
            for _ in range(40):
                pgcc.save(pgcc.parse(text), path)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save_often, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert pgcc.load(path) in [pgcc.parse(text) for text in texts]
    assert [p.name for p in tmp_path.iterdir()] == ["x.pgc"]


def test_a_new_temporary_file_is_not_taken_for_the_abandoned_one_before_it(tmp_path, monkeypatch):
    """Two processes remove an abandoned file; its writer makes it again before the second one has the lock."""
    fcntl = pytest.importorskip("fcntl")
    abandoned, lock = tmp_path / f".x.pgc.{16 * '0'}.tmp", fcntl.flock
    abandoned.write_text("old")

    def remove_and_make_again(file, how):
        abandoned.unlink()
        abandoned.write_text("new")
        lock(file, how)

    monkeypatch.setattr(formats_io.fcntl, "flock", remove_and_make_again)
    formats_io._remove_abandoned(tmp_path, ".x.pgc.")
    assert abandoned.read_text() == "new"
    monkeypatch.undo()
    formats_io._remove_abandoned(tmp_path, ".x.pgc.")
    assert not abandoned.exists()


INTERRUPTED = """
import signal, sys, numpy as np, pgcc
signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background ignore
L = np.eye(60) + 0.1
circuit = pgcc.dpp(L=L)
print("ready", flush=True)
while True:
    pgcc.save(circuit, sys.argv[1])
"""


@pytest.mark.slow
def test_an_interrupt_at_any_moment_of_a_save(tmp_path):
    """What is there is whole, and nothing is left behind."""
    path, rng = tmp_path / "x.npz", np.random.default_rng(0)
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdout.readline() == b"ready\n"
        while not path.exists():
            time.sleep(0.001)
        time.sleep(rng.random() / 50)
        child.send_signal(signal.SIGINT)
        child.wait()
        child.stdout.close()
        assert len(pgcc.load(path).variables) == 60
        assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]


def interrupted(file):
    file.write(b"half")
    raise KeyboardInterrupt


def test_an_interrupt_inside(tmp_path):
    path = tmp_path / "x.pgc"
    pgcc.save(BETA, path)
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        interrupted(file)
    assert pgcc.load(path) == BETA
    assert [p.name for p in tmp_path.iterdir()] == ["x.pgc"]


# -- names in CSV -------------------------------------------------------------------------------------------


@pytest.fixture
def blanks(tmp_path):
    names = [" a", "a", "b ", ' "c", d ']
    X = np.random.default_rng(0).integers(0, 2, (50, 4))
    X[:, 1] = 1 - X[:, 0]
    return names, X, tmp_path / "data.csv"


def write_table(path, names, X, **how):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, **how)
        writer.writerow(names)
        writer.writerows(X.tolist())


def test_names_in_quotes_keep_their_blanks(blanks, run, tmp_path):
    names, X, path = blanks
    write_table(path, names, X, quoting=csv.QUOTE_ALL)
    run("fit", path, "--model", "chow-liu", "-o", tmp_path / "model.npz")
    assert pgcc.load(tmp_path / "model.npz").variables == tuple(names)


def test_names_without_quotes_lose_them_and_that_is_said(blanks, tmp_path, capsys):
    from pgcc import cli

    _, X, path = blanks
    write_table(path, [" a", "b ", "c", "d"], X)
    assert cli.main(["fit", str(path), "--model", "chow-liu", "-o", str(tmp_path / "model.npz")]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"pgcc: {path}: column ' a' is called 'a', without the blanks around it: to keep them, put")
    assert pgcc.load(tmp_path / "model.npz").variables == ("a", "b", "c", "d")
    write_table(path, [" a", "a", "c", "d"], X)
    with pytest.warns(UserWarning, match="blanks"), pytest.raises(EvidenceError, match="'a' occurs twice"):
        ChowLiu().fit(path)


@pytest.mark.parametrize("how", [{}, {"quoting": csv.QUOTE_ALL}])
def test_known_names_are_found_with_their_blanks(blanks, how, tmp_path, run):
    names, X, path = blanks
    pgcc.save(
        ChowLiu().fit(X).circuit_.relabel(dict(zip([f"x{i}" for i in range(1, 5)], names, strict=True))),
        tmp_path / "m.npz",
    )
    model = pgcc.compile(pgcc.load(tmp_path / "m.npz"))
    write_table(path, names[::-1], X[:, ::-1], **how)
    told = json.loads(run("score", tmp_path / "m.npz", path, "--json"))
    assert told["total"] == pytest.approx(model.logprob(X).sum(), rel=1e-12)


def test_samples_are_read_back(blanks, tmp_path, run):
    names, X, path = blanks
    circuit = ChowLiu().fit(X).circuit_.relabel(dict(zip([f"x{i}" for i in range(1, 5)], names, strict=True)))
    pgcc.save(circuit, tmp_path / "m.npz")
    path.write_text(run("sample", tmp_path / "m.npz", "-n", 20, "--seed", 1))
    fitted = ChowLiu().fit(path)
    assert fitted.feature_names_in_.tolist() == names
    told = json.loads(run("score", tmp_path / "m.npz", path, "--json"))
    assert (told["rows"], told["impossible"]) == (20, 0)


@pytest.mark.slow
def test_a_long_header_with_a_name_twice_is_refused_at_once(tmp_path):
    """In a number of steps that grows as the header does: 200,000² of them would take an hour."""
    path = tmp_path / "x.csv"
    names = [f"n{i}" for i in range(200_000)]
    path.write_text(",".join([*names, "n199999"]) + "\n")
    with pytest.raises(EvidenceError, match="'n199999' occurs twice"):
        ChowLiu().fit(path)


WEATHER = [["w", ["a", "b", "c"], ["w=a", "w=b", "w=c"]]]
DOMAINS = {
    "columns as a dict": [["w", ["a", "b", "c"], {"w=a": 1, "w=b": 2, "w=c": 3}]],
    "states as text": [["w", "abc", ["w=a", "w=b", "w=c"]]],
    "no number": [["w", ["a", "b", float("nan")], ["w=a", "w=b", "w=c"]]],
    "unprintable": [["w", ["a", "b", "\n"], ["w=a", "w=b", "w=c"]]],
    "a state twice": [["w", ["1", 1, "c"], ["w=a", "w=b", "w=c"]]],
    "a fourth state without a column": [["w", ["a", "b", "c", "d"], ["w=a", "w=b", "w=c", None]]],
    "no states": [*WEATHER, ["v", [], []]],
    "no triple": [["w", ["a", "b", "c"]]],
}


@pytest.mark.parametrize("what", DOMAINS)
def test_domains_that_are_none(tmp_path, what):
    path = tmp_path / "w.npz"
    pgcc.save(pgcc.pc.categorical("w", {"a": 1, "b": 2, "c": 3}).to_pgc(), path)
    with np.load(path) as arrays:
        given = dict(arrays)
    assert json.loads(given["domains"].tobytes()) == WEATHER
    given["domains"] = np.frombuffer(json.dumps(DOMAINS[what]).encode(), np.uint8)
    np.savez(path, **given)
    with pytest.raises(FormatError):
        pgcc.load(path)
