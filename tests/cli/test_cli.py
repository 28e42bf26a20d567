"""The command line: every command, option, error and exit code."""

from __future__ import annotations

import io
import json
import math
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pgcc
from pgcc import cli
from pgcc.methods import METHODS
from pgcc.validity.standing import NOT_ASKED

BETA = "(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)"
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "beta.pgc")


class Result:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        """The lines of a command that went well."""
        assert (self.code, self.err) == (0, "")
        return self.out.splitlines()

    @property
    def error(self) -> str:
        """The one line of a command that failed."""
        assert self.code == 2
        assert self.out == ""
        (line,) = self.err.splitlines()
        return line.removeprefix("pgcc: ")


@pytest.fixture
def run(capsys):
    def run(*arguments: str) -> Result:
        code = cli.main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def beta(run):
    """Ask the running example of the paper."""
    return lambda *arguments: run("query", "--expr", BETA, *arguments)


@pytest.fixture
def table(tmp_path):
    def write(text: str, encoding: str = "utf-8") -> str:
        path = tmp_path / "rows.csv"
        path.write_bytes(text.encode(encoding))
        return str(path)

    return write


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "pgcc", *arguments], capture_output=True, text=True, **options)


# -- query ----------------------------------------------------------------------------------------


def test_one_query(beta):
    assert beta("z2=0, z3=0").lines == ["0.04"]


def test_several_queries(beta):
    assert beta("z1=1", "z1=0", "z1=0, z2=1, z3=1", "").lines == ["0.3", "0.7", "0.48", "1"]


def test_no_evidence_is_the_total(run):
    assert run("query", "--expr", "2*z + 6").lines == ["1"]
    assert run("query", "--expr", "2*z + 6", "--no-normalize").lines == ["8"]
    assert run("query", "--expr", "2*z + 6", "--no-normalize", "z=1").lines == ["2"]


def test_a_file(run):
    assert run("query", EXAMPLE, "z2=0, z3=0").lines == ["0.04"]


def test_a_saved_circuit(run, tmp_path):
    pgcc.save(pgcc.parse(BETA), tmp_path / "beta.npz")
    assert run("query", tmp_path / "beta.npz", "z2=0, z3=0").lines == ["0.04"]


def test_text_on_standard_input(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("p = 0.3\np*rain + 0.7\n"))
    assert run("query", "-", "rain=1").lines == ["0.3"]


def test_options_stand_anywhere(beta, run):
    assert beta("z1=1", "--exact", "z1=0").lines == ["3/10", "7/10"]
    assert beta("--exact", "z1=1").lines == ["3/10"]
    assert run("query", "--exact", EXAMPLE, "z1=1").lines == ["3/10"]
    assert run("query", EXAMPLE, "--exact", "z1=1").lines == ["3/10"]


def test_exact_fractions_have_all_their_digits(run):
    text = "*".join(f"(z{i}/1024 + 1023/1024)" for i in range(1500))
    limit = sys.get_int_max_str_digits()
    (line,) = run("query", "--expr", text, ", ".join(f"z{i}=1" for i in range(1500)), "--exact").lines
    assert line.startswith("1/")
    assert len(line) == 2 + math.ceil(15000 * math.log10(2))
    assert sys.get_int_max_str_digits() == limit


def test_log(run):
    text = "*".join(f"(z{i}/8 + 7/8)" for i in range(500))
    ones = ", ".join(f"z{i}=1" for i in range(500))
    (line,) = run("query", "--expr", text, ones, "--log").lines
    assert float(line) == pytest.approx(-500 * math.log(8), rel=1e-12)
    assert run("query", "--expr", text, ones).lines == ["0"]
    assert run("query", "--expr", "z", "z=0", "--log").lines == ["-inf"]


def test_bound(beta):
    (line,) = beta("z1=1", "--bound").lines
    value, bound = map(float, line.split("\t"))
    assert value == pytest.approx(0.3, rel=1e-14)
    assert 0 < bound < 1e-13


def test_rtol_and_method(run):
    square = "((a + b)**2 - (a - b)**2)/8 + 1/2"
    for method in ("auto", "top", "bottom", "fft", "ball"):
        (line,) = run("query", "--expr", square, "a=1, b=1", "--method", method).lines
        assert float(line) == pytest.approx(0.5, rel=1e-12)
    assert "needs a decomposable circuit" in run("query", "--expr", square, "--method", "direct").error
    coarse = run("query", "--expr", BETA, "z1=1", "--rtol", "1e-3", "--bound").lines
    assert float(coarse[0].split("\t")[1]) <= 1e-3


def test_validation_can_be_skipped(run):
    assert "'z' occurs to a power above 1" in run("query", "--expr", "z**2/2 + 1/2").error
    assert run("query", "--expr", "z**2/2 + z/2", "--no-validate", "z=1").lines == ["0.5"]


def test_json(beta, run):
    first, second = map(json.loads, beta("z1=1", "z1=0, z2=?", "--json").lines)
    assert first == {"evidence": {"z1": 1}, "prob": pytest.approx(0.3)}
    assert second == {"evidence": {"z1": 0}, "prob": pytest.approx(0.7)}
    assert json.loads(*beta("z1=1", "--json", "--exact").lines) == {
        "evidence": {"z1": 1},
        "exact": "3/10",
        "prob": 0.3,
    }
    assert json.loads(*beta("z1=1", "--json", "--log").lines)["logprob"] == pytest.approx(math.log(0.3))
    assert sorted(json.loads(*beta("z1=1", "--json", "--bound").lines)) == ["bound", "evidence", "prob"]


def test_json_has_every_bit_and_no_infinities(run):
    (line,) = run("query", "--expr", "z/3 + 2/3", "z=1", "--json").lines
    assert json.loads(line)["prob"] == 1 / 3
    refuse = {"parse_constant": lambda name: pytest.fail(f"{name} is not JSON")}
    (line,) = run("query", "--expr", "z", "z=0", "--log", "--json").lines
    assert json.loads(line, **refuse) == {"evidence": {"z": 0}, "logprob": None}
    (line,) = run("query", "--expr", "10**400*z", "--no-normalize", "--exact", "--json").lines
    assert json.loads(line, **refuse) == {"evidence": {}, "exact": "1" + "0" * 400, "prob": None}


# -- query with a table ---------------------------------------------------------------------------


def test_table(beta, table):
    path = table("z3,z2,z1\n1,1,0\n0,0,\n?,-1,1\n")
    assert beta("--evidence", path).lines == ["0.48", "0.04", "0.3"]
    assert beta("--evidence", path, "--exact").lines == ["12/25", "1/25", "3/10"]
    assert float(beta("--evidence", path, "--log").lines[1]) == pytest.approx(math.log(0.04))
    values, bounds = np.array([line.split("\t") for line in beta("--evidence", path, "--bound").lines], float).T
    np.testing.assert_allclose(values, [0.48, 0.04, 0.3])
    assert bounds.max() < 1e-13


def test_table_without_rows(beta, table):
    assert beta("--evidence", table("z1,z2\n")).lines == []


def test_table_as_json(beta, table, monkeypatch):
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", 6)  # two rows at a time
    rows = [json.loads(line) for line in beta("--evidence", table("z1\n1\n0\n?\n1\n0\n"), "--json").lines]
    assert [row["row"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["prob"] for row in rows] == pytest.approx([0.3, 0.7, 1.0, 0.3, 0.7])


def test_table_on_standard_input(beta, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("z1\n1\n0\n"))
    assert beta("--evidence", "-").lines == ["0.3", "0.7"]


def test_table_agrees_with_python(beta, table):
    rows = np.random.default_rng(0).integers(-1, 2, (3000, 3))
    path = table("z1,z2,z3\n" + "\n".join(",".join(map(str, row)) for row in rows))
    expected = pgcc.compile(pgcc.parse(BETA)).prob(rows)
    for threads in ("1", "2", "-1"):
        got = np.array(beta("--evidence", path, "--threads", threads).lines, float)
        np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_table_errors_name_the_place(run, beta, table, monkeypatch):
    assert beta("--evidence", table("z1,z2\n1,0\n1,5\n")).error.endswith(
        "rows.csv, line 3: 'z2' is '5': evidence is 1 (in), 0 (out) or ? (unobserved)"
    )
    for before in (0, 3, 5000):  # in the first bytes that are decoded together, and in later ones
        bad = table("z1\n" + "1\n" * before + "\u00e9\n", "latin-1")
        assert f"rows.csv, line {before + 2}: this is not text in UTF-8" in beta("--evidence", bad).error
    assert beta("--evidence", "nosuch.csv").error == "nosuch.csv cannot be read: No such file or directory"
    monkeypatch.setattr("pgcc.data.tables._AT_A_TIME", 4)
    monkeypatch.setattr("pgcc.model.find_standing", lambda *_: NOT_ASKED)  # as if no search had found the coefficient
    bad = run("query", "--expr", "z1 + 1/4*z2 - 1/4*z1*z2", "--evidence", table("z1,z2\n0,1\n?,?\n?,?\n1,1\n"))
    assert bad.code == 2
    assert "rows.csv, row 0 being line 4: the 'probability' of evidence z1=1, z2=1 (row 1) is -0.25" in bad.err
    assert bad.out.splitlines() == ["0.25", "1"]  # what was answered before


# -- show -----------------------------------------------------------------------------------------


def test_show(run):
    lines = run("show", EXAMPLE).lines
    assert lines[:2] == ["variables: z1, z2, z3", "circuit: 3 variables, 14 edges, depth 4, formal degree 3"]
    told = str(pgcc.compile(pgcc.parse(BETA)).explain())
    assert [re.sub(r"\d\S* ms", "ms", line) for line in lines[1:]] == re.sub(r"\d\S* ms", "ms", told).splitlines()


def test_show_a_query(run):
    (line,) = (line for line in run("show", EXAMPLE, "z1=1").lines if line.startswith("query: "))
    assert line.startswith("query: method direct, value 0.3")


def test_show_many_variables(run):
    (line, *_) = run("show", "--expr", "+".join(f"z{i}" for i in range(50))).lines
    assert line == "variables: " + ", ".join(f"z{i}" for i in range(20)) + ", …"


def test_show_json(run):
    data = json.loads(*run("show", "--expr", BETA, "--json").lines)
    assert data["names"] == ["z1", "z2", "z3"]
    assert (data["edges"], data["degree"], data["decomposable"], data["strategy"]) == (14, 3, True, "direct")
    assert data["query"] is None
    data = json.loads(*run("show", "--expr", BETA, "--json", "--no-normalize", "z1=1").lines)
    assert data["total"] is None
    assert data["query"]["value"] == pytest.approx(0.3)


def test_show_dot(run):
    lines = run("show", "--expr", "0.3*rain + 0.7", "--dot").lines
    assert lines[0] == "digraph circuit {"
    assert any("rain" in line for line in lines)
    assert lines[-1] == "}"


def test_dot_needs_no_distribution(run):
    assert run("show", "--expr", "z**2 - 1", "--dot").lines[0] == "digraph circuit {"


def test_show_draws_a_part(run, tmp_path):
    assert "the top 3 of 12 nodes" in "\n".join(run("show", "--expr", BETA, "--dot", "--most-nodes", "3").lines)
    assert "nodes around 'z3'" in "\n".join(run("show", "--expr", BETA, "--dot", "--around", "z3").lines)
    pytest.importorskip("matplotlib")
    picture = tmp_path / "part.svg"
    run("show", "--expr", BETA, "--plot", picture, "--around", "z3", "--most-nodes", "3")
    assert "3 nodes around 'z3', of 12 nodes and 14 edges" in picture.read_text(encoding="utf-8")


# -- compile --------------------------------------------------------------------------------------


def test_compile_to_standard_output(run):
    result = run("compile", "--expr", BETA)
    assert result.code == 0
    assert result.out == pgcc.emit(pgcc.parse(BETA))


def test_compile_to_a_file(run, tmp_path):
    path = tmp_path / "evaluator.py"
    mask = os.umask(0o027)
    try:
        assert run("compile", EXAMPLE, "-o", path).lines == []
    finally:
        os.umask(mask)
    assert path.read_text(encoding="utf-8") == pgcc.emit(pgcc.load(EXAMPLE))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["evaluator.py"]
    done = subprocess.run([sys.executable, path, "z2=0", "z3=0"], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(0.04)


def test_compile_replaces_nothing_unasked(run, tmp_path):
    path = tmp_path / "evaluator.py"
    path.write_text("mine")
    assert run("compile", "--expr", "z", "-o", path).error == f"{path} exists: --force replaces it"
    assert path.read_text() == "mine"
    assert run("compile", "--expr", "z", "-o", path, "--force").lines == []
    assert path.read_text() == pgcc.emit(pgcc.parse("z"))


def test_compile_follows_links(run, tmp_path):
    (tmp_path / "link.py").symlink_to(tmp_path / "real.py")
    assert run("compile", "--expr", "z", "-o", tmp_path / "link.py", "--force").lines == []
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == pgcc.emit(pgcc.parse("z"))


def test_compile_writes_all_or_nothing(run, tmp_path, monkeypatch):
    path = tmp_path / "evaluator.py"
    path.write_text("mine")

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert run("compile", "--expr", "z", "-o", path, "--force").error == (
        f"{path} cannot be written: No space left on device"
    )
    assert os.listdir(tmp_path) == ["evaluator.py"]
    assert path.read_text() == "mine"


def test_compile_passes_options_on(run):
    assert run("compile", "--expr", "2*z + 6", "--no-normalize").out == pgcc.emit(
        pgcc.parse("2*z + 6"), normalize=False
    )
    assert "to a power above 1" in run("compile", "--expr", "z**2").error


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a COMMAND (see pgcc --help)"),
        (["quary"], "there is no command 'quary': did you mean query?"),
        (["query"], "expected a FILE, or --expr TEXT (see pgcc query --help)"),
        (["query", "--expr", "z", "--frob"], "unknown option --frob (see pgcc query --help)"),
        (["query", "--exp", "z"], "unknown option --exp: did you mean --expr? (see pgcc query --help)"),
        (["query", "--expr"], "argument --expr: expected one argument"),
        (["query", "--expr", "z", "--exact", "--log"], "argument --log: not allowed with argument --exact"),
        (["query", "--expr", "z", "--exact", "--rtol", "1e-3"], "--rtol means nothing with --exact"),
        (["query", "--expr", "z", "--exact", "--method", "fft"], "--method means nothing with --exact"),
        (["query", "--expr", "z", "z=1", "--evidence", "x.csv"], "evidence is given twice: as 'z=1' and by --evidence"),
        (["query", "-", "--evidence", "-"], "cannot both be read from standard input"),
        (["query", "--expr", "z", "--rtol", "x"], "argument --rtol: invalid float value: 'x'"),
        (["query", "--expr", "z", "--rtol", "2"], "--rtol 2.0 is not between"),
        (["query", "--expr", "z", "--method", "magic"], "argument --method: invalid choice: 'magic'"),
        (["query", "--expr", "z", "--threads", "0"], "--threads 0 is neither"),
        (["query", "--expr", "z", "z=2"], "'z' is '2' in 'z=2'"),
        (["query", "--expr", "z", "z=1, z=0"], "'z' is both 1 and 0"),
        (["query", "--expr", "rain", "ran=1"], "unknown variable 'ran': did you mean 'rain'?"),
        (["query", "--expr", "z - 1"], "the total g(1) is 0"),
        (["query", "nosuch.pgc"], "nosuch.pgc: there is no such file"),
        (["show", "--expr", "z", "z=1", "z=0"], "expected at most one piece of evidence, found 'z=0' too"),
        (["show", "--expr", "z", "--dot", "--json"], "not allowed with argument"),
        (["show", "--expr", "z", "--around", "z"], "add --plot PATH or --dot"),
        (["show", "--expr", "z", "--dot", "--around", "y"], "in the circuit: the variables are z"),
        (["compile", "--expr", "z", "z=1"], "unexpected 'z=1' (see pgcc compile --help)"),
        (["compile", "--expr", "z", "-o", "/no/such/x.py"], "/no/such/x.py cannot be written: No such file"),
        (["compile", "nosuch.pgc"], "nosuch.pgc: there is no such file"),
    ],
)
def test_errors_are_one_line(run, arguments, message):
    assert message in run(*arguments).error


def test_a_folder_is_no_file(run, tmp_path):
    (tmp_path / "x.pgc").mkdir()
    assert "x.pgc" in run("query", tmp_path / "x.pgc").error


def test_a_binary_file_is_no_text(run, tmp_path):
    (tmp_path / "x.pgc").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in run("query", tmp_path / "x.pgc").error


def test_mistakes_in_text_are_pointed_at(run, tmp_path, monkeypatch):
    path = tmp_path / "bad.pgc"
    path.write_text("p = 0.5\np*z +* 0.5\n")
    monkeypatch.chdir(tmp_path)
    result = run("query", "bad.pgc")
    assert result.code == 2
    message, line, caret = result.err.splitlines()
    assert message.startswith("pgcc: bad.pgc, line 2, column 6: expected ")
    assert (line, caret) == ("  p*z +* 0.5", "       ^")


def test_internal_errors_are_one_line_too(run, monkeypatch):
    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("a\nb")

    monkeypatch.setattr(pgcc, "parse", fail)
    assert run("query", "--expr", "z").error.startswith("internal error, please report it: RuntimeError: a b (")
    monkeypatch.setenv("PGCC_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        cli.main(["query", "--expr", "z"])


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141), (MemoryError, 2)])
def test_exit_codes(run, monkeypatch, error, code):
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(pgcc, "parse", fail)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    result = run("query", "--expr", "z")
    assert result.code == code
    assert result.err == ("pgcc: out of memory\n" if code == 2 else "")


# -- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["query", "--help"], ["show", "--help"], ["compile", "--help"]])
def test_help(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: pgcc ")
    assert max(map(len, out.splitlines())) <= 120


def test_help_names_the_methods(capsys):
    with pytest.raises(SystemExit):
        cli.main(["query", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    listed = out[out.index("auto (the default)") : out.index("'pgcc show'")].rstrip("; ")
    assert listed.replace(" or ", ", ").split(", ")[1:] == list(METHODS)


def test_version(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"pgcc {pgcc.__version__}\n"


# -- whole processes ------------------------------------------------------------------------------


def test_process():
    done = process("query", EXAMPLE, "z2=0, z3=0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.04\n", "")


def test_process_reads_standard_input():
    done = process("query", "-", "z=1", input="0.5*z + 0.5")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.5\n", "")


def test_process_fails_with_one_line():
    done = process("query", "nosuch.pgc")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "pgcc: nosuch.pgc: there is no such file\n"


@pytest.mark.slow
def test_broken_pipe_is_quiet(table):
    path = table("z\n" + "1\n" * 50_000)  # more output than a pipe holds
    command = [sys.executable, "-m", "pgcc", "query", "--expr", "0.123456789*z + 1", "--evidence", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.readline().startswith(b"0.1")
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_full_disk_is_told_once():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pgcc", "query", "--expr", "z"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (2, "pgcc: No space left on device\n")


INTERRUPTED = """
import os, signal, sys
from pgcc.cli import main
signal.signal(signal.SIGINT, signal.{handler})

def interrupt(*args, **options):
    os.kill(os.getpid(), signal.SIGINT)

import {module}
{module}.{function} = interrupt
sys.exit(main())
"""


def interrupted(where: str, *arguments: object, handler: str = "default_int_handler") -> int:
    """The exit code of a command that is interrupted when it calls a function."""
    module, function = where.rsplit(".", 1)
    text = INTERRUPTED.format(module=module, function=function, handler=handler)
    return subprocess.run([sys.executable, "-c", text, *map(str, arguments)], stdout=subprocess.DEVNULL).returncode


WRITING = ["convert --expr z/2+1/2 {}.pgc", "compile --expr z/2+1/2 -o {}.py", "sample --expr z/2+1/2 -o {}.csv",
           "explore --expr z/2+1/2 -o {}.html", "show --expr z/2+1/2 --plot {}.svg"]  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("arguments", ["query --expr z/2+1/2 z=1", *WRITING])
def test_an_interrupt_ends_commands_at_once(arguments, tmp_path):
    """Python's own handler waits for the call of a library that is under way: minutes, for balls of large kernels."""
    written = arguments.format(tmp_path / "new").split()
    assert interrupted("pgcc.parse", *written) == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("arguments", WRITING)
def test_an_interrupt_leaves_no_half_written_file(arguments, tmp_path):
    assert interrupted("os.fsync", *arguments.format(tmp_path / "new").split()) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_an_interrupt_that_is_ignored(tmp_path):
    """As by a job in the background, which Ctrl-C is not meant for."""
    assert interrupted("os.fsync", "convert", "--expr", "z", tmp_path / "z.pgc", handler="SIG_IGN") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["z.pgc"]
