"""Two-dimensional maps of embeddings."""

import warnings

import numpy as np

from gcb.errors import GCBError

MAX_POINTS = 3000
"""Beyond this t-SNE takes minutes instead of seconds, and the map shows nothing more."""
COMPONENTS = 50
PERPLEXITY = 30.0


def tsne(embeddings: np.ndarray, seed: int, *, perplexity: float = PERPLEXITY) -> np.ndarray:
    """Return (n, 2) t-SNE positions of the rows; the same seed gives the same map on the same machine.

    The first 50 principal components are mapped, as is usual: the rest is mostly noise and takes most of the time.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    rows = np.asarray(embeddings, np.float64).reshape(len(embeddings), -1)
    if not 4 <= len(rows) <= MAX_POINTS:
        raise GCBError(f"a map of {len(rows)} points is not possible; accepted: 4 to {MAX_POINTS}.")
    scale = rows.std(axis=0).mean()
    if not 0 < scale < np.inf:
        raise GCBError("the embeddings are all equal or not finite: there is nothing to map.")
    components = min(COMPONENTS, *rows.shape)
    rows = PCA(components, random_state=seed).fit_transform(rows / scale)
    settings = {"perplexity": min(perplexity, (len(rows) - 1) / 3), "init": "pca" if components > 1 else "random"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=RuntimeWarning)  # divisions inside TSNE where points coincide
        return TSNE(2, random_state=seed, **settings).fit_transform(rows)
