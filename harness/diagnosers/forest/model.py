"""A trained forest and its file: no pickle, trusted types listed, refused where it does not fit.

A file is a zip archive that skops writes. It holds a dictionary: plain values, and classifiers of
which only the types of `TRUSTED` are made; any other is refused.
"""

from __future__ import annotations

import lzma
import zipfile
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cases.documents import write_bytes
from cases.errors import InputError
from harness.diagnosers.features import FEATURE_VERSION

FORMAT = "evalharness.forest/1.2"
SHIPPED = Path(__file__).with_name("model.skops")
TRAIN = "evalharness train forest --suite simulated_core --out FILE, then -d forest:FILE"
# Beyond what skops makes by itself (scikit-learn's public estimators, numpy's arrays).
TRUSTED: tuple[str, ...] = ("sklearn.tree._tree.Tree",)
# What the libraries raise for a file that is no forest's, or was damaged.
DAMAGED = (
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class Forest:
    """What `forest` knows.

    Attributes:
        suite: Digest of the suite whose train split it was trained on.
        suite_name: Its name.
        cases: How many cases that were.
        feature_version: Version of the numbers that it takes.
        features, rank_features: Their names, in order.
        trust: Weight of the first rule's vote beside the trees', chosen on the dev split.
        verdict, cause, rank: Classifiers of cases by verdict, of faulty ones by cause, and of
            ranks by whether they are a cause's place.
        alone, echoes, second: What weighs another rule that holds, see `second`; the last is None
            where too few training cases had two faults.
        on_gpu: Whether training cases ran on GPUs, the values that came: 1, 0 or both. Echoes are
            known of such jobs only.
        scopes: Cause -> its commonest scope.
        candidates: Tables that an undecidable case lacks (joined by commas) -> its commonest
            candidates.
        calibration: a and b of P(right) = 1 / (1 + exp(-(a + b logit(share of votes)))), fitted
            on the dev split.
        threshold: Least P(right) at which it blames, chosen on the dev split.
    """

    suite: str
    suite_name: str
    cases: int
    feature_version: str
    features: list[str]
    rank_features: list[str]
    trust: float
    verdict: Any
    cause: Any
    rank: Any
    alone: dict[str, int]
    echoes: dict[str, dict[str, int]]
    second: Any
    on_gpu: list[float]
    scopes: dict[str, str]
    candidates: dict[str, list[str]]
    calibration: list[float]
    threshold: float


def save(forest: Forest, path: Path) -> None:
    """Write a forest's file."""
    import sklearn

    content = {field.name: getattr(forest, field.name) for field in fields(forest)}
    content |= {"format": FORMAT, "sklearn": sklearn.__version__}
    write_bytes(path, _skops().dumps(content, compression=zipfile.ZIP_LZMA))


def load(path: Path) -> Forest:
    """Read a forest's file.

    Raises:
        InputError: there is none, it holds a type that is not trusted, or it is of another
            version of the features or of scikit-learn; says how to train one.
    """
    if not path.is_file():
        raise InputError(f"must be a trained forest ({TRAIN})", where="forest", found=str(path))
    data, skops = path.read_bytes(), _skops()
    try:
        unknown = sorted(set(skops.get_untrusted_types(data=data)) - set(TRUSTED))
        content = {} if unknown else skops.loads(data, trusted=list(TRUSTED))
    except DAMAGED as error:
        must = f"must be a file that `train forest` wrote ({error})"
        raise InputError(must, where=path) from None
    if unknown:
        raise InputError(f"must hold no types but {list(TRUSTED)}", where=path, found=unknown)
    _check(content, path)
    return Forest(**{field.name: content[field.name] for field in fields(Forest)})


def _check(content: Any, path: Path) -> None:
    """Refuse what was trained on other numbers or by another scikit-learn."""
    import sklearn

    found = content if isinstance(content, dict) else {}
    minor = sklearn.__version__.rsplit(".", 1)[0]
    for key, wanted in (("format", FORMAT), ("feature_version", FEATURE_VERSION)):
        if found.get(key) != wanted:
            must = f"must be of {key} {wanted} (train anew: {TRAIN})"
            raise InputError(must, where=path, found=found.get(key))
    if str(found.get("sklearn")).rsplit(".", 1)[0] != minor:
        must = f"must be trained with the installed scikit-learn {minor} (train anew: {TRAIN})"
        raise InputError(must, where=path, found=found.get("sklearn"))


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        must = "needs the extra `forest` (pip install 'evalharness[forest]')"
        raise InputError(must, where="forest", found="no skops") from None
    return skops.io
