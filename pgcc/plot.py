"""Pictures: a bar chart of marginals, the distribution of the size, a heat map of covariances, a circuit as a graph.

Every function draws into `ax`, or into a new figure, and returns the Axes; `save` writes them to a file. Figures are
made without pyplot, so no window is opened and no global state changes; a notebook shows the Axes of such a figure as
the picture. matplotlib is imported when you first draw.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pgcc.data.answers import entries
from pgcc.data.evidence import Evidence
from pgcc.draw.labels import LOOKS, shortened
from pgcc.draw.layout import MARGIN, RADIUS, Drawing, Mark, Wire, lay_out
from pgcc.draw.part import Around, Stub
from pgcc.draw.svg import INK, LINE, wire_colour
from pgcc.errors import EvidenceError, FormatError, PgccError
from pgcc.formats.io import writing
from pgcc.ir.circuit import Circuit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pgcc.model import Model, Names

FREE, OBSERVED, MEAN = "#4c78a8", "#bdbdbd", "#d1495b"
MOST_VERTICAL = 12  # more bars than this are horizontal, so that their names can be read
MOST_NAMED = 60  # more bars, or rows of a heat map, than this have numbers instead of names
LONGEST_NAME = 20  # characters
VISIBLE = 1e-3  # sizes less probable than this, relative to the most probable one, are not shown at the ends
PIXELS = 72  # of a drawn circuit, per inch: its letters then have the same size as all others

# Extension to the metadata without which equal pictures are equal files.
FORMATS: dict[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None},
    ".png": {},
    ".svg": {"Date": None, "Creator": None},
}


def marginals(model: Model, evidence: Any = None, *, ax: Axes | None = None, top: int | None = None) -> Axes:
    """A bar chart of the marginals Pr(X_i = 1 | evidence). Observed variables are grey and hatched.

    A variable with states has a bar for each of them.

    Parameters
    ----------
    model : Model
        The model to ask.
    evidence : dict or array
        A single piece of evidence, as in `Model.prob`.
    ax : matplotlib Axes, optional
        Where to draw. By default, in a new figure.
    top : int, optional
        Show only this many variables, the most probable first.

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    pgcc.Model.marginals : the probability of every variable
    pgcc.plot.save : write a picture to a file

    Examples
    --------
    >>> import pgcc
    >>> ax = pgcc.plot.marginals(pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")))
    >>> [round(float(bar.get_height()), 12) for bar in ax.patches]
    [0.7, 0.4]
    """
    given = _one(model, evidence)
    values = model.marginals(evidence, names=False)
    shown = np.arange(len(values)) if top is None else np.argsort(-values, kind="stable")[: _positive(top)]
    domains, known = model.circuit.domains, given.values(0)
    names, of = entries(model.variables, domains), [name for name, _, _ in domains.axis] if domains else model.variables
    names = [names[i] for i in shown]
    ax = _axes(ax, *_bar_size(names))
    horizontal = len(names) > MOST_VERTICAL
    bars = (ax.barh if horizontal else ax.bar)(np.arange(len(names)), values[shown], color=FREE)
    labels = _name_ticks(ax.yaxis if horizontal else ax.xaxis, names, 0 if horizontal else _slant(names))
    observed = [at for at, i in enumerate(shown) if not isinstance(known.get(of[i], {0}), set)]
    for i in observed:
        bars[i].set(facecolor=OBSERVED, hatch="///", edgecolor="white")
    for i in observed if labels else []:
        labels[i].set_color(LINE)  # also where the bar has no height
    if horizontal:
        ax.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6))  # the first one on top
    else:
        ax.set(xlim=(-0.6, len(names) - 0.4), ylim=(0, 1))
    (ax.xaxis if horizontal else ax.yaxis).set_label_text(f"probability{_bar(given)}", parse_math=False)
    return _plain(ax)


def cardinality(model: Model, evidence: Any = None, *, over: Names = None, ax: Axes | None = None) -> Axes:
    """A bar chart of how many variables are in, Pr(|S ∩ T| = k | evidence), with a line at the mean.

    Parameters
    ----------
    model : Model
        The model to ask.
    evidence : dict or array
        A single piece of evidence, as in `Model.prob`.
    over : names, optional
        The variables T to count, as in every question. By default, all of them.
    ax : matplotlib Axes, optional
        Where to draw. By default, in a new figure.

    Returns
    -------
    matplotlib Axes
        The bars are a single artist, ``ax.patches[0]``. The limits leave out the ends where bars are too small to see.

    See Also
    --------
    pgcc.Model.cardinality : the distribution of how many variables are in
    pgcc.plot.save : write a picture to a file

    Examples
    --------
    >>> import pgcc
    >>> ax = pgcc.plot.cardinality(pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")))
    >>> ax.lines[0].get_label()
    'mean 1.1'
    """
    given = _one(model, evidence)
    pmf = model.cardinality(evidence, over=over)
    sizes = np.arange(len(pmf))
    mean = float(sizes @ pmf)
    ax = _axes(ax, 6.0, 3.2)
    # A step for every bar and one of height 0 for the gap after it.
    steps = np.column_stack([pmf, np.zeros_like(pmf)]).ravel()[:-1]
    ax.stairs(steps, np.column_stack([sizes - 0.4, sizes + 0.4]).ravel(), fill=True, color=FREE)
    ax.axvline(mean, color=MEAN, linestyle="--", linewidth=1.2, label=f"mean {mean:.4g}")
    seen = np.flatnonzero(pmf >= VISIBLE * pmf.max())
    ax.set_xlim(seen[0] - 0.7, seen[-1] + 0.7)
    ax.set_ylim(0, 1.08 * pmf.max())
    ax.locator_params("x", integer=True)
    counted = "variables are 1" if model.circuit.domains is None else "are in"
    ax.set_xlabel(f"how many of {'the' if over is None else 'these'} {len(pmf) - 1} {counted}")
    ax.yaxis.set_label_text(f"probability{_bar(given)}", parse_math=False)
    ax.legend(frameon=False)
    return _plain(ax)


def covariance(model: Model, evidence: Any = None, *, ax: Axes | None = None) -> Axes:
    """A heat map of Cov(X_i, X_j | evidence): blue where two variables repel each other, red where they attract.

    White means 0, and the darkest colour is that of the strongest pair. The variances on the diagonal are often larger,
    but are drawn no darker.

    Parameters
    ----------
    model : Model
        The model to ask.
    evidence : dict or array
        A single piece of evidence, as in `Model.prob`.
    ax : matplotlib Axes, optional
        Where to draw. By default, in a new figure.

    Returns
    -------
    matplotlib Axes
        The map is ``ax.images[0]``.

    See Also
    --------
    pgcc.Model.covariance : which variables attract or repel each other
    pgcc.plot.save : write a picture to a file

    Examples
    --------
    >>> import pgcc
    >>> ax = pgcc.plot.covariance(pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")))
    >>> ax.images[0].get_array().round(12).tolist()
    [[0.21, 0.12], [0.12, 0.24]]
    """
    given = _one(model, evidence)
    matrix = model.covariance(evidence)
    names = entries(model.variables, model.circuit.domains)
    side = 2.4 + 0.26 * min(len(names), MOST_NAMED)
    ax = _axes(ax, side + 0.9, side)
    most = _largest_pair(matrix)
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most, interpolation="nearest")
    beyond = "max" if matrix.size and matrix.max() > most else "neither"
    ax.figure.colorbar(image, ax=ax, extend=beyond, shrink=0.85).set_label(f"covariance{_bar(given)}", parse_math=False)
    _name_ticks(ax.xaxis, names, _slant(names))
    _name_ticks(ax.yaxis, names, 0)
    ax.tick_params(length=0)
    return ax


def tornado(
    model: Model, query: Any, given: Any = None, *, change: float = 0.1, top: int = 15, ax: Axes | None = None
) -> Axes:
    """Which entries of the tables of a Bayesian network Pr(query | given) depends on most, as a tornado plot.

    Every bar reaches from the posterior with lower odds of an entry to that with higher odds; the line is the posterior
    itself.

    Parameters
    ----------
    model : Model
        The model of a Bayesian network.
    query, given, change
        As in `Model.sensitivity`, which has the numbers.
    top : int
        Show only this many entries.
    ax : matplotlib Axes, optional
        Where to draw. By default, in a new figure.

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    pgcc.Model.sensitivity : the numbers behind the bars
    pgcc.plot.save : write a picture to a file

    Examples
    --------
    >>> import pgcc
    >>> lawn = pgcc.builders.bayesian_network({"rain": 0.2, "wet": (["rain"], {0: 0.1, 1: 0.9})})
    >>> ax = pgcc.plot.tornado(pgcc.compile(lawn), "rain=1", "wet=1", top=2)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['Pr(rain=1)', 'Pr(wet=1 | rain=0)']
    """
    found = model.sensitivity(query, given, change=change)[: _positive(top)]
    middle = float(model.conditional(query, given))
    names = list(map(str, found))
    ax = _axes(ax, 10.0, 1.2 + 0.3 * len(names))
    for sign, ends, colour in (("/", [one.low for one in found], MEAN), ("×", [one.high for one in found], FREE)):
        widths = np.subtract(ends, middle)
        ax.barh(np.arange(len(found)), widths, left=middle, color=colour, label=f"odds {sign} {1 + change:g}")
    ax.axvline(middle, color=LINE, linewidth=1)
    ax.set_yticks(np.arange(len(names)), [shortened(name, 3 * LONGEST_NAME) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.legend(frameon=False, loc="lower right")
    asked = _one(model, query).describe(0).removeprefix("evidence ")
    ax.xaxis.set_label_text(f"Pr({asked}{_bar(_one(model, given))})", parse_math=False)
    return _plain(ax)


def learning_curve(estimator: Any, *, ax: Axes | None = None) -> Axes:
    """The mean log-likelihood of the training and validation data after every epoch, with a line at the one kept.

    Of an ensemble, the validation data of every member are shown.

    Parameters
    ----------
    estimator : Estimator
        A fitted estimator of `pgcc.learn` with a `history_`.
    ax : matplotlib Axes, optional
        Where to draw. By default, in a new figure.

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    pgcc.plot.save : write a picture to a file

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.learn import MixtureOfTrees
    >>> ax = pgcc.plot.learning_curve(MixtureOfTrees(2, max_iter=4).fit([[0, 0], [1, 1], [0, 1]] * 20))
    >>> [line.get_label() for line in ax.lines[:2]]
    ['training', 'validation']
    """
    members = getattr(estimator, "members_", None)
    shown = [estimator] if members is None else [one for one in members if hasattr(one, "history_")]
    if not shown or not all(isinstance(getattr(one, "history_", None), dict) for one in shown):
        raise PgccError(
            f"{type(estimator).__name__} has no history_: estimators that are fitted in epochs have learning curves"
        )
    ax = _axes(ax, 6.0, 3.6)
    for number, one in enumerate(shown):
        history, colour = one.history_, FREE if members is None else f"C{number % 10}"
        epochs = 1 + np.arange(len(history["validation"]))
        if members is None:
            ax.plot(epochs, history["train"], color=OBSERVED, label="training")
        name = "validation" if members is None else shortened(" ".join(repr(one).split()), 2 * LONGEST_NAME)
        ax.plot(epochs, history["validation"], color=colour, label=name)
        if getattr(one, "best_epoch_", -1) >= 0:
            ax.axvline(1 + one.best_epoch_, color=MEAN if members is None else colour, linestyle="--", linewidth=1)
    ax.set_xlabel("epoch")
    ax.set_ylabel("mean log-likelihood of a row")
    ax.legend(frameon=False)
    return _plain(ax)


def _largest_pair(matrix: np.ndarray) -> float:
    """The largest |Cov(X_i, X_j)|, i ≠ j; if all are 0, the largest variance, and 1 if all variances are 0 too."""
    pairs = np.abs(matrix - np.diag(np.diag(matrix))).max(initial=0.0)
    return float(pairs or np.abs(matrix).max(initial=0.0) or 1.0)


# -- circuits -------------------------------------------------------------------------------------


def circuit(circuit: Circuit, *, ax: Axes | None = None, most_nodes: int = 80, around: Around = None) -> Axes:
    """A picture of the circuit as a layered graph, as in notebooks.

    Parameters
    ----------
    circuit : Circuit
        The circuit to draw.
    ax : matplotlib Axes, optional
        Where to draw. By default, in a new figure.
    most_nodes : int
        If the circuit has more nodes than this, only its top is drawn; "⋯ 3" stands for three omitted children.
    around : str, Circuit or Node, optional
        Draw the neighbourhood of this variable, or of this part of the circuit, instead of the top.

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    pgcc.Circuit.to_networkx : convert the circuit to a graph
    pgcc.plot.save : write a picture to a file

    Examples
    --------
    >>> import pgcc
    >>> ax = pgcc.plot.circuit(pgcc.parse("0.4*a*b + 0.6"))
    >>> sorted(text.get_text() for text in ax.texts)
    ['+', '2/5', '3/5', 'a', 'b', '×']
    >>> ax = pgcc.plot.circuit(pgcc.parse("0.4*a*b + 0.6"), around="b", most_nodes=2)
    >>> sorted(text.get_text() for text in ax.texts)
    ["2 nodes around 'b', of 5 nodes and 4 edges", 'b', '×', '⋯ 1', '⋯ 1']
    """
    if not isinstance(circuit, Circuit):
        raise PgccError(f"only a Circuit can be drawn as a graph, not {type(circuit).__name__}: draw model.circuit")
    drawing = lay_out(circuit, most_nodes, around)
    ax = _axes(ax, drawing.width / PIXELS, drawing.height / PIXELS)
    _draw(ax, drawing)
    ax.set_axis_off()
    return ax


def _draw(ax: Axes, drawing: Drawing) -> None:
    for wire in drawing.wires:
        _draw_wire(ax, wire)
    for mark in drawing.marks:
        _draw_mark(ax, mark)
    if drawing.note:
        _write(ax, drawing.width / 2, drawing.height - MARGIN, drawing.note, fontsize=8, color=LINE)
    ax.set_xlim(0, drawing.width)
    ax.set_ylim(drawing.height, 0)
    ax.set_aspect("equal")


def _draw_wire(ax: Axes, wire: Wire) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    points = wire.curve
    codes = [Curve.MOVETO, *[Curve.CURVE4] * (len(points) - 1)]
    style = "--" if wire.cut else "-"
    ax.add_patch(PathPatch(Curve(points, codes), fill=False, edgecolor=LINE, linewidth=1, linestyle=style))
    if wire.label_at is not None:
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        _write(ax, *wire.label_at, wire.label, fontsize=8, color=wire_colour(wire), bbox=paper)


def _draw_mark(ax: Axes, mark: Mark) -> None:
    from matplotlib.patches import Ellipse, FancyBboxPatch

    if isinstance(mark.node, Stub):
        _write(ax, mark.x, mark.y, mark.label, fontsize=9, color=LINE)
        return
    look = LOOKS[mark.node.op]
    edge = INK if look.is_outlined else "none"
    style: dict[str, Any] = {"facecolor": look.fill, "edgecolor": edge, "linewidth": 1, "zorder": 4}
    if look.is_round:
        ax.add_patch(Ellipse((mark.x, mark.y), mark.width, 2 * RADIUS, **style))
    else:
        corner = mark.x - mark.width / 2, mark.y - RADIUS
        ax.add_patch(FancyBboxPatch(corner, mark.width, 2 * RADIUS, "round,pad=0,rounding_size=4", **style))
    _write(ax, mark.x, mark.y, mark.label, fontsize=10, color=INK, zorder=5)


def _write(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    ax.text(x, y, text, ha="center", va="center_baseline", parse_math=False, **style)


# -- figures and files ----------------------------------------------------------------------------


def save(picture: Axes | Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture to a file.

    The file is written completely or not at all, and equal pictures give equal files.

    Parameters
    ----------
    picture : matplotlib Axes or Figure
        The return value of a function of this module, or any other picture.
    path : str or path-like
        The extension chooses the format: `.png`, `.svg` or `.pdf`.

    Raises
    ------
    FormatError
        If the extension is none of these, or the file cannot be written.

    See Also
    --------
    pgcc.plot.marginals : a bar chart of marginals
    pgcc.plot.circuit : a picture of the circuit itself

    Examples
    --------
    >>> import pgcc
    >>> pgcc.plot.save(pgcc.plot.circuit(pgcc.parse("z/2 + 1/2")), "coin.doc")
    Traceback (most recent call last):
    pgcc.errors.FormatError: coin.doc: a picture cannot have the extension '.doc'; it can have .pdf, .png or .svg
    """
    path, extension, rc_context = Path(path), format_of(path), _matplotlib().rc_context
    figure: Any = getattr(picture, "figure", None)
    if not hasattr(figure, "savefig"):
        raise PgccError(f"only a picture (Axes or Figure of matplotlib) can be saved, not {type(picture).__name__}")
    with writing(path) as file, rc_context(_AS_TEXT):
        figure.savefig(file, format=extension[1:], metadata=dict.fromkeys(FORMATS[extension]))


# Text is written as text, in the reader's fonts, which keeps files small.
_AS_TEXT = {"svg.fonttype": "none", "svg.hashsalt": "pgcc"}


def format_of(path: str | os.PathLike[str]) -> str:
    """The extension of a picture file, if pictures can be written in that format.

    >>> format_of("tree.SVG")
    '.svg'
    """
    _matplotlib()
    suffix = Path(path).suffix
    if suffix.lower() not in FORMATS:
        *others, last = FORMATS
        raise FormatError(
            f"{path}: a picture cannot have the extension {suffix!r}; it can have {', '.join(others)} or {last}"
        )
    return suffix.lower()


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
    except ImportError:
        raise PgccError("pictures need matplotlib: pip install matplotlib") from None
    return matplotlib


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The given Axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    figure = _matplotlib().figure.Figure(figsize=(width, height), layout="constrained")
    return figure.add_subplot(axes_class=_axes_class())


@cache
def _axes_class() -> type[Axes]:
    """Axes that notebooks show: no pyplot knows their figure, so that nothing else would."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    class Picture(Axes):
        """Axes that are alone in their figure."""

        def _repr_svg_(self) -> str:
            page, figure = StringIO(), cast(Figure, self.figure)
            with _matplotlib().rc_context(_AS_TEXT):
                figure.savefig(page, format="svg", metadata=dict.fromkeys(FORMATS[".svg"]))
            return page.getvalue()

    return Picture


def _plain(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _bar_size(names: Sequence[str]) -> tuple[float, float]:
    if len(names) > MOST_VERTICAL:
        return 6.0, 1.0 + 0.2 * min(len(names), MOST_NAMED)
    return 2.0 + 0.5 * len(names), 3.2


def _name_ticks(axis: Any, names: Sequence[str], rotation: float) -> list[Any]:
    """Label the ticks of an axis with names if there is space for them, and otherwise with numbers from 0."""
    if len(names) > MOST_NAMED:
        return []
    shown = [shortened(name, LONGEST_NAME) for name in names]
    axis.set_ticks(np.arange(len(names)), shown, rotation=rotation, parse_math=False)
    return axis.get_ticklabels()


def _slant(names: Sequence[str]) -> float:
    """The rotation of names below an axis: they are slanted if they are too long to fit side by side."""
    return 90 if max(map(len, names), default=0) > 5 else 0


def _one(model: Model, evidence: Any) -> Evidence:
    given = Evidence(model.circuit.variables, evidence)
    if not given.single:
        raise EvidenceError("a picture shows one piece of evidence, not a table of them")
    return given


def _bar(given: Evidence) -> str:
    """The evidence after a vertical bar, if there is any."""
    text = given.describe(0)
    return "" if text == "no evidence" else f" | {text.removeprefix('evidence ')}"


def _positive(top: int) -> int:
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 1:
        raise PgccError(f"top={top!r} is not a number of variables to show (a number ≥ 1)")
    return int(top)
