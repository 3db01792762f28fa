"""A map of embeddings: t-SNE, which keeps near what is near."""

import warnings

import numpy as np

from gcb.errors import GCBError

MOST = 3000
"""Points in a map: beyond it the time grows from seconds to minutes, and the eye sees no more."""
COMPONENTS = 50
PERPLEXITY = 30.0


def tsne(embeddings: np.ndarray, seed: int, *, perplexity: float = PERPLEXITY) -> np.ndarray:
    """Positions (n, 2) of the rows on a map; the same seed gives the same map on the same machine.

    The first 50 principal components go into it, as is usual: the rest is mostly noise and costs most of the time.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    rows = np.asarray(embeddings, np.float64).reshape(len(embeddings), -1)
    if not 4 <= len(rows) <= MOST:
        raise GCBError(f"a map of {len(rows)} points was asked for; accepted: 4 to {MOST}.")
    spread = rows.std(axis=0).mean()
    if not 0 < spread < np.inf:
        raise GCBError("the embeddings are all alike or not finite: there is nothing to map.")
    rows = rows / spread
    components = min(COMPONENTS, *rows.shape)
    rows = PCA(components, random_state=seed).fit_transform(rows)
    settings = {"perplexity": min(perplexity, (len(rows) - 1) / 3), "init": "pca" if components > 1 else "random"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=RuntimeWarning)  # of its own divisions, where points coincide
        return TSNE(2, random_state=seed, **settings).fit_transform(rows)
