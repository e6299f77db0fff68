"""The published counts of FuseFlow, and which of them a model can be compared with.

The counts are those that the artifact's plot of its main figure has as data.  Some contradict each
other, or the closed forms of the loops that they are said to count; their points say why.
"""

from __future__ import annotations

from dataclasses import dataclass

FUSIONS = ("none", "layer", "all")
"""Unfused, partially fused and fully fused, as ``Program.fuse`` calls them."""


@dataclass(frozen=True)
class Point:
    """A published count; ``why`` says what it can be compared with, or why it cannot."""

    model: str
    data: str
    fusion: str
    cycles: int
    excluded: bool
    why: str

    @property
    def name(self) -> str:
        return f"{self.model} {self.data} {self.fusion}"


@dataclass(frozen=True)
class Lanes:
    """A published count of attention with copies of what is in two of its loops.

    Masks have blocks of 64; scores are made at all pairs.
    """

    rows: int
    heads: int
    cycles: int

    @property
    def name(self) -> str:
        return f"attention in {self.rows} x {self.heads} lanes"


LANES = (
    Lanes(1, 1, 806_101_226),
    Lanes(2, 1, 403_054_894),
    Lanes(4, 1, 201_531_826),
    Lanes(4, 4, 50_390_209),
)
"""Of the figure with one graph of attention on its own [FuseFlow, Figure 15]."""


@dataclass(frozen=True)
class Graph:
    """A data set: nodes, entries of the adjacency matrix, features, classes, walks of two edges.

    Walks are those that the fully fused counts imply: the products of its adjacency matrix with
    itself and with the features take ``walks * (features + 1)`` cycles.
    """

    nodes: int
    entries: int
    features: int
    classes: int
    walks: int


GRAPHS = {
    "Cora": Graph(2_708, 10_556, 1_433, 7, 116_012),
    "Cora-ML": Graph(2_995, 16_316, 2_879, 7, 292_494),
    "DBLP": Graph(17_716, 105_734, 1_639, 4, 2_188_626),
    "Collab": Graph(235_868, 2_358_104, 128, 2, 431_274_246),
    "MAG": Graph(736_389, 5_416_271, 128, 349, 1_440_251_960),
}


@dataclass(frozen=True)
class Images:
    """A data set of images: their pixels, and the hidden values of its autoencoder."""

    pixels: int
    hidden: int


IMAGES = {
    "ImageNet": Images(224**2, 256),
    "NIH-CXR": Images(1024**2, 512),
    "LUNA16": Images(512**2, 512),
}

DECODERS = 12
"""Of GPT-3: all its counts are twelve times an integer."""

_GCN = {
    "Cora": (48_998_261, 29_997_611, 166_361_105),
    "Cora-ML": (115_435_265, 61_259_360, 842_383_059),
    "DBLP": (934_042_655, 627_775_406, 3_589_346_391),
    "Collab": (1_056_927_396, 409_951_944, 55_634_377_783),
    "MAG": (16_012_893_504, 7_505_550_758, 185_792_502_899),
}
_SAGE = {
    "Cora": (79_355_629, 37_798_698, 166_361_105),
    "Cora-ML": (183_474_564, 99_243_656, 842_388_679),
    "DBLP": (1_269_087_780, 627_775_394, 3_589_346_391),
    "Collab": (1_569_940_814, 505_455_837, 55_634_376_841),
    "MAG": (29_409_284_934, 7_505_550_758, 849_409_284_934),
}
_SAE = {
    "ImageNet": (109_113, 108_595, 162_480),
    "NIH-CXR": (134_241, 133_723, 212_147),
    "LUNA16": (134_241, 133_723, 212_147),
}
_GPT = {
    "blocks of 16": (98_511_714_108, 56_340_821_076, 36_439_754_748),
    "blocks of 32": (99_652_522_812, 60_497_286_996, 40_596_220_668),
    "blocks of 64": (102_275_175_360, 60_497_286_996, 40_596_220_668),
}

SMALL = ("Cora", "Cora-ML")
"""Graphs whose unfused counts agree with the closed forms."""


def _of_graph(model: str, data: str, fusion: str) -> tuple[bool, str]:
    """Whether a count of a graph network is excluded, and why."""
    if fusion == "all":
        if (model, data) == ("GraphSAGE", "MAG"):
            return True, "ends in the digits of its own unfused count, and is 4.6 times that of GCN"
        if data == "Collab":
            return True, "nodes**2 + 664 thousand: all rows scanned again for every row, not walks"
        if data == "MAG":
            return True, "the walks that it implies are not checked against the data"
        return False, "walks * (features + 1): the rows of the first product, once for every edge"
    if data not in SMALL:
        return True, "2 to 5 times the closed form of the same loops, which Cora's counts follow"
    if fusion == "layer" and model == "GraphSAGE":
        return True, "1.3 to 1.6 times its busiest stage: the two paths seem not to overlap"
    if fusion == "layer":
        return False, "the busiest stage of each layer: entries * (features + 1), or the weights"
    return False, "the sum of all stages"


def _of_decoder(data: str, fusion: str) -> tuple[bool, str]:
    if fusion == "none":
        return True, "stored files of its attention have another length of sequence than the others"
    if data == "blocks of 16":
        return True, "346 M cycles less per decoder than larger blocks, although scores are dense"
    parts = "three projections, scores at all pairs, and two layers, in graphs one after the other"
    if fusion == "all":
        parts = "keys, values, and all else, which starts when all of these are there"
    return False, f"twelve times one decoder: {parts}"


def _of_images(data: str) -> str:
    """Why a count of an autoencoder is excluded: all of them are."""
    bias = "a bias takes the cycles of one vector, where a batch of 32 is described"
    if data == "ImageNet":
        return f"{bias}, and the encoder fewer than one vector of dense pixels needs"
    return f"{bias}; equal to {'LUNA16' if data == 'NIH-CXR' else 'NIH-CXR'}, with other images"


def points() -> list[Point]:
    """All points, in the order of the figure."""
    found = []
    for data, counts in _SAE.items():
        for fusion, cycles in zip(FUSIONS, counts, strict=True):
            found.append(Point("autoencoder", data, fusion, cycles, True, _of_images(data)))
    for model, table in (("GCN", _GCN), ("GraphSAGE", _SAGE)):
        for data, counts in table.items():
            for fusion, cycles in zip(FUSIONS, counts, strict=True):
                found.append(Point(model, data, fusion, cycles, *_of_graph(model, data, fusion)))
    for data, counts in _GPT.items():
        for fusion, cycles in zip(FUSIONS, counts, strict=True):
            found.append(Point("GPT-3", data, fusion, cycles, *_of_decoder(data, fusion)))
    return found
