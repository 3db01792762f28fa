"""Agents on the Hugging Face Hub, or a server that speaks its protocol (HF_ENDPOINT).

A repository holds what `gcb.agent.export` writes. Only these files are downloaded, by their names, to the Hub's cache;
nothing in them is executed. Tokens are found, sent and stored by `huggingface_hub` alone.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gcb
from gcb.errors import GCBError
from gcb.runs.run_dir import CHECKPOINT, CONFIG, EVAL, RECORD, Run

PREFIX = "hf://"
CARD = "README.md"


def is_hub_name(run: Any) -> bool:
    """Return whether this names an agent on the Hub: hf://owner/name, with or without @revision."""
    return isinstance(run, str) and run.startswith(PREFIX)


def download(
    name: str,
    *,
    revision: str | None = None,
    cache_dir: Path | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
) -> Path:
    """Download an agent, hf://owner/name or hf://owner/name@revision, and return its directory in the cache."""
    check_installed()
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    repo_id, _, given = name.removeprefix(PREFIX).partition("@")
    if repo_id.count("/") != 1:
        raise GCBError(_bad_name(f"{PREFIX}{repo_id}"))
    revision = revision or given or None
    options: dict[str, Any] = {"cache_dir": cache_dir, "token": token, "endpoint": endpoint()}
    options |= {"library_name": "gcb", "library_version": gcb.__version__}
    with _explain_errors(f"{PREFIX}{repo_id}"):
        options["local_files_only"] = local_files_only or not _can_be_reached(repo_id, revision, token)
        path = Path(hf_hub_download(repo_id, RECORD, revision=revision, **options)).parent
        options["revision"] = path.name  # the commit, so that all files are of one version
        for file in (CONFIG, CHECKPOINT):
            hf_hub_download(repo_id, file, **options)
        for file in (EVAL, CARD):
            with suppress(EntryNotFoundError):
                hf_hub_download(repo_id, file, **options)
        checkpoint = Run(path).checkpoint()
        assert checkpoint is not None, "its file was downloaded"
        if not checkpoint.weights.name.endswith(".safetensors"):
            raise GCBError(f"{CHECKPOINT} names {checkpoint.weights.name}; accepted: a safetensors file")
        hf_hub_download(repo_id, checkpoint.weights.name, **options)
    return path


def endpoint() -> str:
    """Return the address of the Hub."""
    from huggingface_hub import constants

    return os.environ.get("HF_ENDPOINT", constants.ENDPOINT).rstrip("/")


def _can_be_reached(repo_id: str, revision: str | None, token: str | bool | None) -> bool:
    """Return whether the Hub can be reached, otherwise the cache is used; raise if the Hub refuses the request."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError

    url = hf_hub_url(repo_id, RECORD, revision=revision, endpoint=endpoint())
    try:
        metadata = get_hf_file_metadata(url, token=token)
    except (EntryNotFoundError, HFValidationError, HfHubHTTPError):
        raise
    except Exception:  # one request only: `hf_hub_download` would retry for half a minute
        return False
    if not re.fullmatch("[0-9a-f]{40}", metadata.commit_hash or ""):
        raise ValueError("it does not answer like a hub")
    return True


def upload(
    directory: Path,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | bool | None = None,
    revision: str | None = None,
    commit_message: str | None = None,
) -> str:
    """Upload an exported agent, creating the repository if necessary, and return the address of the commit."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint(), token=token, library_name="gcb", library_version=gcb.__version__)
    with _explain_errors(f"{PREFIX}{repo_id}"):
        api.create_repo(repo_id, private=private, exist_ok=True)
        message = commit_message or f"Upload an agent of gcb {gcb.__version__}"
        stale = ["weights-*.safetensors"]  # of an earlier upload
        return str(
            api.upload_folder(
                repo_id=repo_id,
                folder_path=directory,
                revision=revision,
                commit_message=message,
                delete_patterns=stale,
            ).commit_url
        )


def _bad_name(name: str) -> str:
    return f"{name!r} is not a name on the Hub; accepted: {PREFIX}owner/name"


def check_installed() -> None:
    """Raise unless the Hub's library can be imported."""
    if find_spec("huggingface_hub") is None:
        raise GCBError("huggingface_hub is not installed: pip install 'gcb[hub]'.")


@contextmanager
def _explain_errors(name: str) -> Iterator[None]:
    """Turn the errors of a server into one line, without requests and their headers."""
    from huggingface_hub import errors

    try:
        yield
    except GCBError as error:
        raise GCBError(f"{name} is not an agent of gcb: {error}") from error
    except errors.HFValidationError as error:
        raise GCBError(_bad_name(name)) from error
    except errors.GatedRepoError as error:
        raise GCBError(
            f"{name} asks for permission: request it on its page, then log in with `hf auth login`"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise GCBError(f"{name} does not exist at {endpoint()}, or is private: `hf auth login` logs in") from error
    except errors.RevisionNotFoundError as error:
        raise GCBError(
            f"{name} has no such revision; accepted: a branch, a tag or a commit of the repository"
        ) from error
    except errors.LocalEntryNotFoundError as error:
        raise GCBError(f"{name} is not in the cache, and {endpoint()} cannot be reached") from error
    except errors.EntryNotFoundError as error:
        raise GCBError(
            f"{name} is not an agent of gcb: it lacks {RECORD}, {CONFIG}, {CHECKPOINT} or its weights"
        ) from error
    except Exception as error:  # whatever the server, the connection or the disk did
        reason = f"{type(error).__name__}, {' '.join(str(error).split())[:150]}"
        raise GCBError(f"{name} could not be exchanged with {endpoint()}: {reason}") from error
