"""Making a Space: the calls of huggingface_hub as values, so that a dry run lists the very ones that a deploy makes."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.space.errors import told
from engine.space.files import Upload
from engine.space.spacefile import SpaceError, Spacefile

#: Seconds until a Space must run. Packages and a GPU build of torch take most of it.
TIMEOUT = 1_800.0
POLL = 2.0
#: For so long after an upload the Hub may still tell what was there before.
GRACE = 20.0

LOG_LINES = 20

UNDER_WAY = {"BUILDING", "APP_STARTING", "RUNNING_BUILDING", "RUNNING_APP_STARTING"}
WHY = {
    "BUILD_ERROR": "the Space could not be built",
    "CONFIG_ERROR": "the Hub does not accept the Space's configuration",
    "RUNTIME_ERROR": "the Space was built, but the app ended",
    "NO_APP_FILE": "the Hub finds no app file in the Space",
    "PAUSED": "the Space is paused; start it on its settings page",
    "STOPPED": "the Space sleeps or was stopped; open its page to start it",
    "DELETING": "the Space is being deleted",
}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Call:
    """One method of `HfApi` with its arguments."""

    method: str
    arguments: dict[str, Any]

    def line(self) -> str:
        """The call as it would be written; an upload by its files, each with its size in bytes."""
        given = ", ".join(f"{name}={_shown(value)}" for name, value in self.arguments.items())
        return f"{self.method}({given})"


@dataclass(frozen=True)
class Files:
    """The operations of a commit before they are made: what goes up, and whether all else in the Space goes."""

    uploads: tuple[Upload, ...]
    replace: bool

    def operations(self, present: Sequence[str]) -> list[Any]:
        """The operations of huggingface_hub; `present` are the files that the Space has."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        ours = {upload.path for upload in self.uploads}
        added = [CommitOperationAdd(path_in_repo=each.path, path_or_fileobj=each.content) for each in self.uploads]
        gone = [path for path in present if path not in ours and path != ".gitattributes"] if self.replace else []
        return [*added, *(CommitOperationDelete(path_in_repo=path, is_folder=False) for path in gone)]


def plan(
    space: Spacefile, repo: str, files: Sequence[Upload], *, private: bool = False, update: bool = False
) -> list[Call]:
    """All calls in their order: the variables and the hardware stand before the first build begins."""
    place = {"repo_id": repo, "repo_type": "space"}
    made = {"space_sdk": space.sdk, "private": private, "exist_ok": update}
    message = "Put this version there" if update else "First version"
    return [
        Call("whoami", {}),
        Call("create_repo", place | made),
        *(Call("add_space_variable", {"repo_id": repo, "key": k, "value": v}) for k, v in space.environment.items()),
        Call("request_space_hardware", {"repo_id": repo, "hardware": space.hardware}),
        *([Call("list_repo_files", place)] if update else []),
        Call("create_commit", place | {"operations": Files(tuple(files), update), "commit_message": message}),
        Call("get_space_runtime", {"repo_id": repo}),
    ]


def deploy(
    calls: Sequence[Call],
    repo: str,
    *,
    say: Say,
    timeout: float = TIMEOUT,
    poll: float = POLL,
    grace: float = GRACE,
) -> str:
    """Make the calls, the last one until the Space runs; returns its address.

    Raises `SpaceError`, which says what to do.
    """
    from huggingface_hub import HfApi

    api, present = HfApi(), list[str]()
    with told(repo):
        for call in calls[:-1]:
            say(call.line().partition("\n")[0])
            arguments = dict(call.arguments)
            if isinstance(files := arguments.get("operations"), Files):
                arguments["operations"] = files.operations(present)
            answer = getattr(api, call.method)(**arguments)
            if call.method == "list_repo_files":
                present = answer
        _wait(api, repo, say, timeout, poll, grace)
    return f"{api.endpoint}/spaces/{repo}"


def _wait(api: Any, repo: str, say: Say, timeout: float, poll: float, grace: float) -> None:
    """Return once the Space runs. What the Hub tells just after an upload may be of what was there before."""
    begun, told_last, moved = time.monotonic(), "", False
    while True:
        runtime = api.get_space_runtime(repo)
        stage, passed = str(getattr(runtime.stage, "value", runtime.stage)), time.monotonic() - begun
        if stage != told_last:
            say(f"{stage} after {passed:.0f} s")
        told_last, moved = stage, moved or stage in UNDER_WAY
        if stage not in UNDER_WAY and (moved or passed >= grace):
            break
        if passed >= timeout:
            raise SpaceError(f"{repo} is still in stage {stage} after {timeout:.0f} s; its page tells how it goes on")
        time.sleep(min(poll, max(0.01, timeout - passed)))
    if stage != "RUNNING":
        said = [f"{WHY.get(stage, 'the Space does not run')} (stage {stage})"]
        said += [str(runtime.raw["errorMessage"])] if runtime.raw.get("errorMessage") else []
        said += _last_lines(api.fetch_space_logs(repo, build=stage in ("BUILD_ERROR", "CONFIG_ERROR")))
        raise SpaceError("\n".join(said))
    if runtime.requested_hardware not in (None, runtime.hardware):
        say(f"it runs on {runtime.hardware}; {runtime.requested_hardware} was asked for and is not there yet")


def _last_lines(lines: Iterable[str]) -> list[str]:
    from huggingface_hub.errors import HfHubHTTPError

    try:
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    except HfHubHTTPError:
        return ["(its log cannot be read)"]
    return text.splitlines()[-LOG_LINES:]


def _shown(value: Any) -> str:
    if not isinstance(value, Files):
        return repr(value)
    size = sum(upload.size for upload in value.uploads)
    head = f"[{len(value.uploads)} files, {size:,} bytes{'; all others of the Space go' if value.replace else ''}]"
    return "\n".join([head, *(f"    {upload.size:>12,}  {upload.path}" for upload in value.uploads)]) + "\n"
