"""Average test log-likelihoods that the paper reports (Zhang, Juba, Van den Broeck 2021, Figure 5), to compare with."""

from __future__ import annotations

from typing import NamedTuple

COLUMNS = ("DPP", "Strudel", "EiNet", "MT", "SimplePGC")


class Published(NamedTuple):
    """One line of the paper's tables; K and C of its SimplePGC where they are known."""

    dpp: float
    strudel: float
    einet: float
    mt: float
    simple_pgc: float
    hyperparameters: tuple[int, int] | None = None

    @property
    def columns(self) -> dict[str, float]:
        """The likelihoods by the names of the columns."""
        return dict(zip(COLUMNS, (self.dpp, self.strudel, self.einet, self.mt, self.simple_pgc), strict=True))


TWENTY_DATASETS = {
    "nltcs": Published(-9.23, -6.07, -6.02, -6.01, -6.05, (1, 20)),
    "msnbc": Published(-6.48, -6.04, -6.12, -6.07, -6.06),
    "kdd": Published(-2.45, -2.14, -2.18, -2.13, -2.14),
    "plants": Published(-31.20, -13.22, -13.68, -12.95, -13.52, (5, 20)),
    "audio": Published(-49.31, -42.20, -39.88, -40.08, -40.21),
    "jester": Published(-63.88, -54.24, -52.56, -53.08, -53.54, (5, 20)),
    "netflix": Published(-64.18, -57.93, -56.54, -56.74, -57.42),
    "accidents": Published(-35.61, -29.05, -35.59, -29.63, -30.46),
    "retail": Published(-11.43, -10.83, -10.92, -10.83, -10.84),
    "pumsb": Published(-51.98, -24.39, -31.95, -23.71, -29.56),
    "dna": Published(-82.19, -87.15, -96.09, -85.14, -80.82, (1, 4)),
    "kosarek": Published(-13.35, -10.70, -11.03, -10.62, -10.72),
    "msweb": Published(-11.31, -9.74, -10.03, -9.85, -9.98),
    "book": Published(-41.22, -34.49, -34.74, -34.63, -34.11),
    "movie": Published(-83.55, -53.72, -51.71, -54.60, -53.15),
    "webkb": Published(-180.61, -154.83, -157.28, -156.86, -155.23),
    "reuters": Published(-107.44, -86.35, -87.37, -85.90, -87.65),
    "20ng": Published(-174.43, -153.87, -153.94, -154.24, -154.03),
    "bbc": Published(-278.15, -256.53, -248.33, -261.84, -254.81),
    "ad": Published(-63.20, -16.52, -26.27, -16.02, -21.65),
}

BABY_REGISTRIES = {
    "apparel": Published(-9.88, -9.51, -9.24, -9.31, -9.10, (5, 7)),
    "bath": Published(-8.55, -8.38, -8.49, -8.53, -8.29, (5, 7)),
    "bedding": Published(-8.65, -8.50, -8.55, -8.59, -8.41, (2, 10)),
    "carseats": Published(-4.74, -4.79, -4.72, -4.76, -4.64, (1, 10)),
    "diaper": Published(-10.61, -9.90, -9.86, -9.93, -9.72, (5, 10)),
    "feeding": Published(-11.86, -11.42, -11.27, -11.30, -11.17),
    "furniture": Published(-4.38, -4.39, -4.38, -4.43, -4.34, (2, 4)),
    "gear": Published(-9.14, -9.15, -9.18, -9.23, -9.04),
    "gifts": Published(-3.51, -3.39, -3.42, -3.48, -3.47, (2, 4)),
    "health": Published(-7.40, -7.37, -7.47, -7.49, -7.24, (2, 4)),
    "media": Published(-8.36, -7.62, -7.82, -7.93, -7.69),
    "moms": Published(-3.55, -3.52, -3.48, -3.54, -3.53, (1, 7)),
    "safety": Published(-4.28, -4.43, -4.39, -4.36, -4.28, (2, 7)),
    "strollers": Published(-5.30, -5.07, -5.07, -5.14, -5.00),
    "toys": Published(-8.05, -7.61, -7.84, -7.88, -7.62),
}


def published(name: str) -> Published | None:
    """What the paper reports of a data set; the files of registries are called amzn_NAME.

    >>> published("amzn_apparel").simple_pgc
    -9.1
    """
    return TWENTY_DATASETS.get(name) or BABY_REGISTRIES.get(name.removeprefix("amzn_"))
