"""Files: what is saved comes back, what is damaged is refused, and nothing is ever half written."""

import io
import json
import os
import random
import stat
import zipfile
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from any_circuits import any_circuits, at_points
from how_many import some
from hypothesis import given, settings

import pgcc
from pgcc.collector import collector_paused
from pgcc.errors import FormatError, ParseError, PgccError
from pgcc.formats import FORMATS, load, save
from pgcc.formats import npz as npz_format
from pgcc.ir.circuit import Circuit
from pgcc.ir.node import ONE, det, product, var, weighted_sum

BETA = pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)")
EXTENSIONS = [".pgc", ".npz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_round_trip(folder, extension):
    @given(any_circuits())
    @settings(max_examples=some(80), deadline=None)
    def check(circuit):
        path = folder / f"any{extension}"
        save(circuit, path)
        assert load(path) == circuit  # node for node, numbers of the same kind

    check()


@pytest.mark.parametrize("extension", [".pgc", ".npz", ".PGC"])
def test_the_example(tmp_path, extension):
    path = str(tmp_path / f"beta{extension}")
    save(BETA, path)
    assert load(path) == BETA


def test_long_numbers_in_npz(tmp_path):
    a = pgcc.variables("a")[0]
    circuit = Fraction(3**20_000, 2**30_001) * a + 2**60 * a + (2**53) * a - (2**53 + 1) + 1e300
    save(circuit, tmp_path / "long.npz")
    assert load(tmp_path / "long.npz") == circuit


def test_equal_files_for_equal_circuits(tmp_path):
    save(BETA, tmp_path / "a.npz")
    save(BETA, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


# -- names of files -------------------------------------------------------------------------------


def test_unknown_extensions_list_the_known_ones(tmp_path):
    for name in ("circuit.doc", "circuit", "circuit.pgc.bak"):
        with pytest.raises(FormatError, match="no such file"):
            load(tmp_path / name)
        with pytest.raises(FormatError, match=r"known are .*\.npz, .*\.pgc"):
            save(BETA, tmp_path / name)
        assert list(tmp_path.iterdir()) == []
        (tmp_path / name).write_text("z")
        with pytest.raises(FormatError, match=r"known are .*\.npz, .*\.pgc"):
            load(tmp_path / name)
        (tmp_path / name).unlink()
    assert set(EXTENSIONS) <= set(FORMATS)


@pytest.mark.parametrize("extension", FORMATS)
def test_the_table_of_formats_says_what_their_modules_do(extension):
    module = import_module(f"pgcc.formats.{FORMATS[extension].module}")
    assert callable(module.read)
    assert hasattr(module, "write") or not FORMATS[extension].is_written
    assert f"`{extension}`" in load.__doc__
    assert f"`{extension}`" in module.__doc__


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_missing_files_and_directories(tmp_path, extension):
    with pytest.raises(FormatError, match="no such file"):
        load(tmp_path / f"missing{extension}")
    with pytest.raises(FormatError, match="cannot be written"):
        save(BETA, tmp_path / "missing" / f"x{extension}")
    (tmp_path / f"folder{extension}").mkdir()
    with pytest.raises(FormatError, match="is a directory"):
        load(tmp_path / f"folder{extension}")
    with pytest.raises(FormatError, match="cannot be written"):
        save(BETA, tmp_path / f"folder{extension}")
    with pytest.raises(FormatError, match="cannot be the name"):
        load(f"a\0b{extension}")
    assert [p.name for p in tmp_path.iterdir()] == [f"folder{extension}"]


def test_only_circuits_are_saved(tmp_path):
    with pytest.raises(FormatError, match="only a circuit"):
        save("z + 1", tmp_path / "x.pgc")


# -- writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch, extension):
    path = tmp_path / f"x{extension}"
    save(BETA, path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError(28, "No space left on device")

    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, fail)
            with pytest.raises(FormatError, match="No space left"):
                save(pgcc.parse("z"), path)
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    with pytest.raises(PgccError):
        save(2**200_000 * pgcc.variables("z")[0], path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_permissions_and_links_are_kept(tmp_path):
    path = tmp_path / "x.pgc"
    save(BETA, path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    link = tmp_path / "link.pgc"
    link.symlink_to(path)
    save(pgcc.parse("z"), link)
    assert link.is_symlink()
    assert load(path) == pgcc.parse("z")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


# -- damaged text ---------------------------------------------------------------------------------


def test_mistakes_in_text_name_the_file(tmp_path):
    path = tmp_path / "wrong.pgc"
    path.write_text("a = z +\n")
    with pytest.raises(ParseError, match=r"wrong\.pgc, line 1, column 8"):
        load(path)
    path.write_bytes(b"z + \xff\xfe")
    with pytest.raises(FormatError, match=r"wrong\.pgc, line 1: this is not text in UTF-8.*byte 4"):
        load(path)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "bom.pgc"
    path.write_bytes("\ufeffz + θ\r\n".encode())
    assert load(path) == pgcc.parse("z + θ")


# -- damaged arrays -------------------------------------------------------------------------------

SAMPLE = Circuit(
    weighted_sum(
        (0.5, Fraction(1, 3), 2, -1),
        (
            product((var("a"), var("b"))),
            det([[1, "1/2"], [0, 1]], np.eye(2), [[1, 2], [3, 4]], [var("a"), var("c")], [ONE, var("b")]),
            var("c", complement=True),
            ONE,
        ),
    ),
    ["b", "a", "c", "d"],
)


def arrays_of(circuit):
    return npz_format.to_arrays(circuit)


def write_arrays(path, arrays):
    np.savez_compressed(path, **arrays)


def as_json(data):
    return np.frombuffer(json.dumps(data).encode(), np.uint8)


def changed(name, place, value):
    def change(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def replaced(name, value):
    return lambda arrays: arrays.__setitem__(name, value)


DAMAGE = {
    "no header": lambda arrays: arrays.pop("header"),
    "another format": replaced("header", as_json({"format": "something", "version": 4})),
    "another version": replaced("header", as_json({"format": "pgcc circuit", "version": 2})),
    "header is a list": replaced("header", as_json([])),
    "header is no JSON": replaced("header", np.frombuffer(b"{", np.uint8)),
    "header is deep": replaced("header", np.frombuffer(b"[" * 9000, np.uint8)),
    "header is long": replaced("header", np.zeros(20_000, np.uint8)),
    "missing array": lambda arrays: arrays.pop("value"),
    "pickled array": replaced("label", np.array([{}], dtype=object)),
    "wrong dtype": lambda arrays: arrays.__setitem__("child", arrays["child"].astype(np.int64)),
    "wrong byte order": lambda arrays: arrays.__setitem__("child", arrays["child"].astype(">i4")),
    "two dimensions": lambda arrays: arrays.__setitem__("child", arrays["child"].reshape(-1, 1)),
    "no dimension": replaced("op", np.uint8(1)),
    "no nodes": lambda arrays: arrays.update(
        {n: a[:0] for n, a in arrays.items() if n not in ("header", "variables", "exact")}, first=np.zeros(1, np.int64)
    ),
    "unknown operation": changed("op", 0, 9),
    "leaf with children": changed("op", -1, 0),
    "var with children": changed("op", -1, 1),
    "first does not start at 0": changed("first", 0, 1),
    "first decreases": changed("first", 3, 10**12),
    "first is negative": changed("first", 1, -5),
    "first ends elsewhere": changed("first", -1, 3),
    "first is short": lambda arrays: arrays.__setitem__("first", arrays["first"][:-1]),
    "child after parent": changed("child", 0, 10**6),
    "child is its own parent": lambda arrays: changed("child", -1, len(arrays["op"]) - 1)(arrays),
    "negative child": changed("child", 0, -1),
    "unknown variable": changed("label", 0, 1000),
    "negative variable": changed("label", 0, -1),
    "missing label": lambda arrays: arrays.__setitem__("label", arrays["label"][:-1]),
    "NaN": changed("value", 0, np.nan),
    "infinite": changed("value", -1, np.inf),
    "unknown exact number": lambda arrays: (changed("is_exact", 0, True)(arrays), changed("value", 0, 99)(arrays)),
    "negative exact number": lambda arrays: (changed("is_exact", 0, True)(arrays), changed("value", 0, -1)(arrays)),
    "half an exact number": lambda arrays: (changed("is_exact", 0, True)(arrays), changed("value", 0, 0.5)(arrays)),
    "missing size": lambda arrays: arrays.__setitem__("size", arrays["size"][:-1]),
    "unknown size": changed("size", 0, 9),
    "missing count": lambda arrays: arrays.__setitem__("counted", arrays["counted"][:-1]),
    "missing number": lambda arrays: arrays.__setitem__("value", arrays["value"][:-1]),
    "exact number that is none": replaced("exact", as_json(["1/0", "1/2"])),
    "exact number by eval": replaced("exact", as_json(["__import__('os')", "1/2"])),
    "exact number that is no text": replaced("exact", as_json([1, 2])),
    "enormous exact number": replaced("exact", as_json(["9" * 100_000, "1/2"])),
    "variables are no list": replaced("variables", as_json("abcd")),
    "variable is no text": replaced("variables", as_json([1, 2, 3, 4])),
    "variable twice": replaced("variables", as_json(["a", "a", "b", "c"])),
    "empty variable": replaced("variables", as_json(["", "a", "b", "c"])),
    "unprintable variable": replaced("variables", as_json(["\n", "a", "b", "c"])),
    "matrix shape": changed("shape", (0, 0), 1),
    "negative shape": changed("shape", (0, 0), -1),
    "enormous shape": changed("shape", (slice(None), slice(None, 2)), 2**31 - 1),
    "missing shape": lambda arrays: arrays.__setitem__("shape", arrays["shape"][:-1]),
    "float flag on exact matrix": changed("shape", (0, 2), 1),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_arrays(tmp_path, name):
    path = tmp_path / "damaged.npz"
    arrays = arrays_of(SAMPLE)
    write_arrays(path, arrays)
    assert load(path) == SAMPLE
    DAMAGE[name](arrays)
    write_arrays(path, arrays)
    with pytest.raises(FormatError, match=r"damaged\.npz"):
        load(path)


def test_not_an_npz(tmp_path):
    path = tmp_path / "x.npz"
    for data in (b"", b"PK", b"z + 1", b"\x93NUMPY" + b"\0" * 100, os.urandom(1000)):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"x\.npz"):
            load(path)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(FormatError, match="no header"):
        load(path)


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.npz"
    arrays = arrays_of(SAMPLE)
    arrays["op"] = np.zeros(100_000_000, np.uint8)
    write_arrays(path, arrays)
    assert path.stat().st_size < 200_000
    with pytest.raises(FormatError, match="bytes that claim to be"):
        load(path)


def test_a_shape_is_not_believed(tmp_path):
    """An array that says it has 2^60 entries takes no memory."""
    path = tmp_path / "x.npz"
    write_arrays(path, arrays_of(SAMPLE))
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (2**60,)})
    parts["op.npy"] = header.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(FormatError, match="'op' is cut off"):
        load(path)


def test_unknown_compression_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    save(SAMPLE, path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(FormatError, match="compression"):
        load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert load(path) == SAMPLE


@pytest.mark.slow
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_any_damage_to_the_bytes_is_an_error_or_harmless(tmp_path, extension):
    """Bytes changed, cut out, put in, doubled: a circuit or a PgccError, never anything else."""
    rng = random.Random(7)
    path = tmp_path / f"x{extension}"
    save(SAMPLE, path)
    whole = path.read_bytes()
    outcomes = {"circuit": 0, "error": 0}
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data) or 1)
            match rng.randrange(4):
                case 0:
                    data[at : at + 1] = rng.randbytes(1)
                case 1:
                    del data[at : at + rng.randint(1, 40)]
                case 2:
                    data[at:at] = rng.randbytes(rng.randint(1, 10))
                case 3:
                    data = data[: at + 1]
        path.write_bytes(data)
        try:
            at_points(load(path))
            outcomes["circuit"] += 1
        except PgccError as error:
            outcomes["error"] += 1
            named = path.name in str(error)
            if not named:
                raise AssertionError(f"the file is not named: {error}") from error
    assert outcomes["error"] > 150
    if extension == ".pgc":
        assert outcomes["circuit"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("stored", [True, False])
def test_any_change_to_an_array_is_an_error_or_a_circuit(tmp_path, stored):
    """As above, but behind valid checksums, so that the checks of the arrays themselves are what is tested."""
    rng = random.Random(11)
    path = tmp_path / "x.npz"
    outcomes = {"circuit": 0, "error": 0}
    for _ in range(300):
        arrays = {name: array.copy() for name, array in arrays_of(SAMPLE).items()}
        name = rng.choice([n for n in arrays if n != "header"])
        flat = arrays[name].reshape(-1).view(np.uint8)
        for _ in range(rng.randint(1, 2)):
            flat[rng.randrange(len(flat))] = rng.choice([0, 1, 2, 3, 4, 5, 127, 128, 255, rng.randrange(256)])
        (np.savez if stored else np.savez_compressed)(path, **arrays)
        try:
            load(path)
            outcomes["circuit"] += 1
        except FormatError:
            outcomes["error"] += 1
    assert min(outcomes.values()) > 10


# -- large files ----------------------------------------------------------------------------------


def test_a_large_circuit(tmp_path):
    rng = random.Random(0)
    with collector_paused():
        layer = [var(f"z{i}") for i in range(500)]
        for _ in range(4):
            sums = [weighted_sum([rng.random() for _ in range(4)], rng.choices(layer, k=4)) for _ in range(4000)]
            layer = [product(rng.choices(sums, k=2)) for _ in range(4000)]
        circuit = Circuit(weighted_sum([1] * len(layer), layer))
    assert circuit.edges > 80_000
    path = tmp_path / "large.npz"
    save(circuit, path)
    assert load(path) == circuit
    assert path.stat().st_size < 16 * circuit.edges
