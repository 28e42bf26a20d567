"""Kernels and graphs in files: `pgcc.load` and the command line."""

from __future__ import annotations

import io
import json
import zipfile
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import pgcc
from pgcc import cli
from pgcc.errors import FormatError

L_BETA = np.array([[1.0, 2.0, 0.0], [2.0, 6.0, 0.0], [0.0, 0.0, 4.0]])
K_BETA = np.array([[0.3, 0.2, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 0.8]])
TRIANGLE = "# a triangle\na b 2\nb c 3\n\na c\n"


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes | np.ndarray):
        path = tmp_path / name
        if isinstance(content, np.ndarray):
            np.save(path, content, allow_pickle=True)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


# -- kernels -------------------------------------------------------------------------------------------------


def test_npy(write):
    path = write("kernel.npy", L_BETA)
    assert pgcc.load(path) == pgcc.dpp(L_BETA)
    assert pgcc.load(path, kernel="factor", names=["a", "b", "c"]) == pgcc.dpp(factor=L_BETA, names=["a", "b", "c"])
    assert pgcc.load(write("K.npy", np.asfortranarray(K_BETA)), kernel="K") == pgcc.dpp(K=K_BETA)
    assert pgcc.load(write("big.npy", L_BETA.astype(">f8"))) == pgcc.dpp(L_BETA)
    assert pgcc.load(write("ints.npy", L_BETA.astype(np.int16))) == pgcc.dpp(L_BETA.astype(int))
    assert pgcc.load(write("KERNEL.NPY", b"" + path.read_bytes())) == pgcc.dpp(L_BETA)
    skew = np.array([[1.0, 2.0], [-2.0, 1.0]])
    assert pgcc.load(write("skew.npy", skew), symmetric=False) == pgcc.dpp(skew, symmetric=False)
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert pgcc.load(write("bad.npy", bad), nearest=True) == pgcc.dpp(bad, nearest=True)


def test_npz(tmp_path):
    path = tmp_path / "kernel.npz"
    np.savez(path, L=L_BETA)
    assert pgcc.load(path) == pgcc.dpp(L_BETA)
    np.savez_compressed(path, K=K_BETA, names=np.array(["ant", "bee", "cat"]))
    assert pgcc.load(path) == pgcc.dpp(K=K_BETA, names=["ant", "bee", "cat"])
    np.savez(path, L=L_BETA, factor=np.ones((2, 1)))
    assert pgcc.load(path, kernel="factor") == pgcc.dpp(factor=np.ones((2, 1)))
    with pytest.raises(FormatError, match="has the arrays L and factor; kernel='L' says"):
        pgcc.load(path)
    with pytest.raises(FormatError, match="has no array 'K', but L, factor"):
        pgcc.load(path, kernel="K")


def test_npz_circuits_are_still_circuits(tmp_path):
    path = tmp_path / "circuit.npz"
    circuit = pgcc.dpp(L_BETA)
    pgcc.save(circuit, path)
    assert pgcc.load(path) == circuit
    with pytest.raises(FormatError, match="holds a circuit: options of kernels mean nothing"):
        pgcc.load(path, kernel="L")
    np.savez(path, stuff=L_BETA)
    with pytest.raises(FormatError, match="it has no header"):
        pgcc.load(path)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,2,0\n2,6,0\n0,0,4\n", None),
        ("ant,bee,cat\n1,2,0\n2,6,0\n0,0,4", ["ant", "bee", "cat"]),
        (",ant,bee,cat\nant,1,2,0\nbee,2,6,0\ncat,0,0,4\n", ["ant", "bee", "cat"]),
        ('\ufeff# a comment\r\nant;bee;"a; cat"\r\n1;2;0\r\n2;6;0\r\n\r\n0;0;4\r\n', ["ant", "bee", "a; cat"]),
        ("1 2 0\n2 6 0\n0 0 4\n", None),
        ("ant\tbee\tcat\n1\t2\t0\n2\t6\t0\n0\t0\t4\n", ["ant", "bee", "cat"]),
    ],
)
def test_csv(write, text, names):
    assert pgcc.load(write("kernel.csv", text)) == pgcc.dpp(L_BETA.astype(int), names=names)


def test_numbers_in_csv(write):
    path = write("kernel.csv", "0.5,1e-1\n.1,+2.\n")
    assert pgcc.load(path) == pgcc.dpp([[0.5, 0.1], [0.1, 2.0]])
    path = write("kernel.csv", "1/2,1/3\n1/3,1\n")
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert pgcc.load(path) == pgcc.dpp([[half, third], [third, 1]])
    assert pgcc.load(write("factor.csv", ",u,v\np,1,0\nq,2,3\n"), kernel="factor").variables == ("p", "q")
    assert pgcc.load(write("factor.csv", "u,v\n1,0\n2,3\n4,5\n"), kernel="factor").variables == ("x1", "x2", "x3")


def test_what_pandas_and_numpy_write(tmp_path):
    path = tmp_path / "kernel.csv"
    frame = pd.DataFrame(L_BETA, index=list("abc"), columns=list("abc"))
    frame.to_csv(path)
    assert pgcc.load(path) == pgcc.dpp(frame)
    pd.DataFrame(L_BETA).to_csv(path)
    assert pgcc.load(path).variables == ("0", "1", "2")
    frame.to_csv(path, index=False)
    assert pgcc.load(path) == pgcc.dpp(frame)
    np.savetxt(path, L_BETA)
    assert pgcc.load(path) == pgcc.dpp(L_BETA)


def pickled() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([[{}]], dtype=object), allow_pickle=True)
    return stream.getvalue()


def header(shape: str, dtype: str = "<f8", data: bytes = b"") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


DAMAGED = {
    "not an array": ("k.npy", b"hello", "is damaged, or not an array in the format of numpy"),
    "empty": ("k.npy", b"", "is damaged, or not an array"),
    "pickled": ("k.npy", pickled(), "holds object, not numbers: pickles are not read"),
    "cut off": (
        "k.npy",
        header("(3, 3)", data=bytes(64)),
        r"cut off or too long: it claims to have the shape \(3, 3\)",
    ),
    "too long": ("k.npy", header("(1, 1)", data=bytes(16)), "cut off or too long"),
    "huge": ("k.npy", header("(99999999, 99999999)"), "cut off or too long"),
    "negative": ("k.npy", header("(-1, 3)"), "cut off or too long"),
    "code in the header": ("k.npy", header("__import__('os').abort()"), "is damaged, or not an array"),
    "dates": ("k.npy", header("(1, 1)", "<M8[s]", bytes(8)), "not numbers"),
    "text": ("k.npy", header("(1, 1)", "<U1", bytes(4)), r"L\['x1', 'x1'\]"),
    "unknown version": ("k.npy", b"\x93NUMPY\x09\x00" + bytes(20), "is damaged, or not an array"),
    "nan": ("k.npy", header("(1, 1)", data=np.array(np.nan).tobytes()), r"k.npy: L\['x1', 'x1'\] is nan"),
    "no entries": ("k.npy", header("(0, 0)"), "k.npy: L is empty"),
    "a scalar": ("k.npy", header("()", data=bytes(8)), "it has 0 dimensions, not 2"),
    "a bad cell": ("k.csv", "1,2\n2,x7\n", r"k.csv, line 2, column 2: 'x7' is not a finite number"),
    "a bad first line": ("k.csv", "1,nan\nnan,1\n", r"k.csv, line 1, column 2: 'nan' is not a finite number"),
    "an empty cell": ("k.csv", "a,b\n1,2\n,2\n", r"k.csv, line 3, column 1: ''"),
    "an overflow": ("k.csv", "1e999\n1\n", "line 1, column 1: '1e999'"),
    "python": ("k.csv", "1,2\n2,__import__('os')\n", r"line 2, column 2: \"__import__"),
    "a division": ("k.csv", "1,1/0\n1/0,1\n", r"line 1, column 2: '1/0'"),
    "ragged": ("k.csv", "1,2\n# so\n2\n", r"k.csv, line 3 has 1 cells, and the first line has 2"),
    "no lines": ("k.csv", "# nothing\n\n", "is empty: it should hold a matrix"),
    "only a header": ("k.csv", "a,b\n", "k.csv: L is empty"),
    "an open quote": ("k.csv", '1,"2\n2,1\n', "k.csv, line 1: not CSV: unexpected end of data"),
    "not UTF-8": ("k.csv", b"1,2\n\xff,1\n", ", line 2: this is not text in UTF-8 .* at byte 4"),
    "other rows": ("k.csv", ",a,b\na,1,0\nc,0,1\n", "row 2 is called 'c', but column 2 'b'"),
    "not square in text": ("k.csv", "1,2\n", "L has to be square: it has 1 row and 2 columns"),
    "indefinite": ("k.csv", "ant,bee\n1,2\n2,1\n", "k.csv: .* eigenvalue -1, to which 'ant' and 'bee'"),
    "equal names": ("k.csv", "ant,ant\n1,0\n0,1\n", "two items are called 'ant'"),
    "no zip": ("k.npz", b"PK nonsense", "k.npz: it is damaged, or not in the .npz format"),
    "one node": ("g.edges", "a b\nc\n", "g.edges, line 2: an edge is two nodes and perhaps a weight, not 'c'"),
    "four words": ("g.edges", "a b 1 2\n", "g.edges, line 1: an edge is two nodes"),
    "a bad weight": ("g.edges", "a b\nb c heavy\n", "g.edges, line 2: the weight 'heavy' is not a finite number"),
    "a weight of nan": ("g.tsv", "a\tb\tnan\n", "g.tsv, line 1: the weight 'nan' is not a finite number"),
    "a negative weight": ("g.edges", "a b 1\n\nb c -1\n", "g.edges, line 3: the weight '-1' is negative"),
    "data of networkx": ("g.edges", "a b {'weight': 3}\n", "line 1: .* data=.'weight'.. writes weights without names"),
    "no edges": ("g.edges", "# none\n", "g.edges has no edges"),
    "graph not UTF-8": ("g.edges", b"a b\nb \xff\n", "g.edges, line 2: this is not text in UTF-8"),
    "a missing node": ("g.edges", "a,,1\n", "line 1: '' is not the name of a node"),
    "disconnected": ("g.edges", "a b\nc d\n", "g.edges: the graph is not connected: .* from 'a' to 'c'"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged(write, what):
    name, content, message = DAMAGED[what]
    with pytest.raises(FormatError, match=message):
        pgcc.load(write(name, content))


def test_damaged_archives(tmp_path):
    path = tmp_path / "kernel.npz"

    def archive(**entries: bytes) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in entries.items():
                file.writestr(f"{name}.npy", data)

    archive(L=pickled())
    with pytest.raises(FormatError, match="array 'L' holds object, not numbers: pickles are not read"):
        pgcc.load(path)
    archive(L=header("(1, 1)", data=bytes(8)), names=header("(1,)", data=bytes(8)))
    with pytest.raises(FormatError, match="'names' has to be a list of text"):
        pgcc.load(path)
    archive(L=bytes(1 << 27))
    with pytest.raises(FormatError, match="bytes that claim to be 134,217,728 are refused"):
        pgcc.load(path)
    np.savez(path, L=L_BETA)
    data = bytearray(path.read_bytes())
    data[200] ^= 0xFF  # inside the array
    path.write_bytes(data)
    with pytest.raises(FormatError, match="is damaged"):
        pgcc.load(path)


def test_every_cut_of_a_file_is_refused(write, tmp_path):
    whole = write("whole.npy", L_BETA).read_bytes()
    for length in range(0, len(whole), 7):
        with pytest.raises(FormatError):
            pgcc.load(write("cut.npy", whole[:length]))
    np.savez(tmp_path / "whole.npz", L=L_BETA)
    whole = (tmp_path / "whole.npz").read_bytes()
    for length in range(0, len(whole), 23):
        with pytest.raises(FormatError):
            pgcc.load(write("cut.npz", whole[:length]))


def test_options(write):
    kernel, graph = write("k.csv", "1\n"), write("g.edges", TRIANGLE)
    with pytest.raises(FormatError, match="kernel='M' is not one of L, K, factor"):
        pgcc.load(kernel, kernel="M")
    with pytest.raises(FormatError, match=r"the format \.csv has no option root="):
        pgcc.load(kernel, root="a")
    with pytest.raises(FormatError, match="have a root"):
        pgcc.load(graph, directed=True)
    with pytest.raises(FormatError, match="killing rates are for the forests of undirected ones"):
        pgcc.load(graph, root="a", killing=1)
    with pytest.raises(FormatError, match="means nothing without a root"):
        pgcc.load(graph, orientation="in")
    with pytest.raises(FormatError, match="the killing rate is a number, not 'x'"):
        pgcc.load(graph, killing="x")
    with pytest.raises(FormatError, match=r"g\.edges: the root 'z' is not a node"):
        pgcc.load(graph, root="z")
    for path in (kernel, graph):
        with pytest.raises(FormatError, match="cannot write the format"):
            pgcc.save(pgcc.parse("a"), path)


# -- graphs --------------------------------------------------------------------------------------------------


def test_edges(write):
    expected = pgcc.spanning_tree([("a", "b", 2), ("b", "c", 3), ("a", "c")])
    for name, text in {
        "g.edges": TRIANGLE,
        "g.edgelist": "a b 2 # heavy\nb c 3\na c {}\n",
        "g.tsv": "a\tb\t2\nb\tc\t3\na\tc\n",
        "h.edges": "a,b,2\r\nb, c, 3\r\na,c\r\n",
    }.items():
        assert pgcc.load(write(name, text)) == expected
    assert pgcc.load(write("g.tsv", "New York\tLos Angeles\t2/3\n")).variables == ("New York-Los Angeles",)


def test_what_networkx_writes(tmp_path):
    G = nx.path_graph(4)
    path = tmp_path / "g.edgelist"
    nx.write_edgelist(G, path)
    assert pgcc.load(path).variables == ("0-1", "1-2", "2-3")
    nx.write_weighted_edgelist(nx.path_graph(3), path)
    assert pgcc.load(path).variables == ("0-1", "1-2")


def test_rooted(write):
    path = write("g.edges", "r a 2\nr b 1\na b 3\nb a 1\n")
    edges = [("r", "a", 2), ("r", "b", 1), ("a", "b", 3), ("b", "a", 1)]
    assert pgcc.load(path, root="r") == pgcc.load(path, root="r", directed=True) == pgcc.arborescence(edges, "r")
    back = write("h.edges", "a r\nb r\n")
    assert pgcc.load(back, root="r", orientation="in") == pgcc.arborescence(
        [("a", "r"), ("b", "r")], "r", orientation="in"
    )
    graph = write("g.edges", TRIANGLE)
    triangle = [("a", "b", 2), ("b", "c", 3), ("a", "c")]
    assert pgcc.load(graph, killing=0.5) == pgcc.load(graph, killing="0.5") == pgcc.spanning_forest(triangle, 0.5)


# -- the command line ----------------------------------------------------------------------------------------


def test_query(run, write):
    kernel = write("kernel.npy", L_BETA)
    assert float(run("query", kernel, "x1=1, x2=0, x3=1")) == pytest.approx(0.08)
    table = write("K.csv", "ant,bee\n1/2,1/4\n1/4,1/2\n")
    assert run("query", table, "ant=1, bee=1", "--kernel", "K", "--exact") == "3/16\n"
    assert run("query", table, "--kernel=factor", "x1=0", "x2=0", "--exact").count("/") == 2
    skew = write("skew.csv", "1,2\n-2,1\n")
    assert run("query", skew, "--nonsymmetric", "x1=1,x2=1", "--exact") == "5/8\n"
    bad = write("bad.csv", "1.0,2\n2,1\n")
    assert float(run("query", bad, "--nearest", "x1=1, x2=1")) == pytest.approx(0, abs=1e-15)


def test_query_graphs(run, write):
    graph = write("g.edges", TRIANGLE)
    assert run("query", graph, "a-b=1", "a-c=1", "--exact") == "8/11\n5/11\n"
    assert run("query", graph, "a-b=1, b-c=1, a-c=1", "--killing", "1") == "0\n"
    arcs = write("h.edges", "r a 2\nr b 1\na b 3\nb a 1\n")
    assert run("query", arcs, "--root", "r", '"a->b"=1', "--exact") == "2/3\n"
    into = write("i.edges", "a r\nb r\na b\n")
    assert run("query", into, "--root", "r", "--orientation", "in", '"a->b"=1', "--exact") == "1/2\n"


def test_self_loops_on_the_command_line(write, capsys):
    graph = write("g.edges", "a b\nb b\n")
    assert cli.main(["query", str(graph), "a-b=1"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "1\n"
    assert captured.err == f"pgcc: {graph}: self-loops are in no tree and are ignored: b-b\n"


def test_show_convert_score(run, write, tmp_path):
    graph, kernel = write("g.edges", TRIANGLE), write("kernel.npy", L_BETA)
    assert "a-b, b-c, a-c" in run("show", graph)
    assert json.loads(run("show", kernel, "--json"))["names"] == ["x1", "x2", "x3"]
    for target in ("kernel.npz", "kernel.pgc"):
        assert "3 variables" in run("convert", kernel, tmp_path / target)
        assert pgcc.load(tmp_path / target) == pgcc.load(kernel)
    run("convert", graph, tmp_path / "g.npz")
    assert pgcc.load(tmp_path / "g.npz") == pgcc.load(graph)
    rows = write("rows.csv", "1,0,1\n")
    assert "over 1 row" in run("score", kernel, rows)


def test_errors(fail, write):
    kernel, graph = write("k.csv", "ant,bee\n1,2\n2,1\n"), write("g.edges", TRIANGLE)
    assert "k.csv: the kernel L is not positive semi-definite" in fail("query", kernel, "ant=1")
    assert "has no option --kernel" in fail("query", graph, "--kernel", "K")
    assert "invalid choice: 'M'" in fail("query", kernel, "--kernel", "M")
    assert "mean nothing for the text of --expr" in fail("query", "--expr", "a", "--root", "r")
    assert "there is no such file" in fail("show", "no.npy")
