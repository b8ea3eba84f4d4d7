"""The first part of the demo: the catalog, served.

Rule 1: everything shown really happens: the samples are loaded into a store, the server is started as a user would
start it, and each answer is what came over HTTP.
Rule 2: an answer that is not what the walk says is a failure of the demo (exit code 1); nothing is left behind.
"""

from __future__ import annotations

import contextlib
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax

__all__ = ["SAMPLES", "Step", "Unexpected", "check", "walk_through"]

SAMPLES = Path("samples")
LINES = 18
WIDTH = 110
START_SECONDS = 30


class Unexpected(Exception):
    """An answer that is not what the walk says."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request of the walk, and what should come back; `shows` is a member or text the answer must have."""

    says: str
    method: str
    path: str
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    shows: str = ""

    def as_curl(self, base: str) -> str:
        """The request as a line for a shell."""
        words = ["curl", *(["-X", self.method] if self.method != "GET" else [])]
        for name, value in self.headers.items():
            words += ["-H", f"{name}: {value}"]
        if self.body is not None:
            words += ["-d", orjson.dumps(self.body).decode()]
        return shlex.join([*words, base + self.path])


def walk(client: httpx.Client) -> Iterator[Step]:
    """The requests in order; what a later one needs is looked up in the catalog, so the samples may change."""
    group, message = _a_derived_message(client)
    xid = f"/messagegroups/{group}/messages/{message}"
    mine = "/messagegroups/demo/messages/greeted"
    definition = {
        "description": "Someone was greeted.",
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": "com.example.greeted"}},
        "labels": {"team": "demo"},
    }
    yield Step("The registry says what it holds.", "GET", "/", shows="messagegroupscount")
    yield Step("Each message group with its messages, in one request.", "GET", "/messagegroups?inline=messages")
    yield Step("One message: what it is based on, and its envelope.", "GET", xid, shows="basemessage")
    yield Step(
        "The same message as version 1.0-rc4 spells it.", "GET", f"{xid}?specversion=1.0-rc4", shows="basemessageuri"
    )
    yield Step("Declare a message; its group is made on the way.", "PUT", mine, 201, definition, shows="createdat")
    yield Step(
        "Find it by a label, whatever else is in the catalog.",
        "GET",
        "/messagegroups?inline=messages&filter=messages.labels.team=demo",
        shows="greeted",
    )
    yield Step(
        "A definition that breaks a rule is refused, with the rule's name.",
        "PATCH",
        mine,
        400,
        {"envelopemetadata": {"type": {"required": False}}},
        shows="cloudevents-required",
    )
    yield Step("So is a change made on an older state.", "PATCH", mine, 400, {"epoch": 99}, shows="mismatched_epoch")
    etag = client.get(mine).headers["etag"]
    yield Step("A client that has the current state gets no body.", "GET", mine, 304, headers={"If-None-Match": etag})
    yield Step("And it is gone again.", "DELETE", "/messagegroups/demo", 204)


def _a_derived_message(client: httpx.Client) -> tuple[str, str]:
    groups = client.get("/messagegroups?inline=messages").raise_for_status().json()
    for groupid, group in groups.items():
        for messageid, message in group["messages"].items():
            if "basemessage" in message:
                return groupid, messageid
    raise Unexpected("the samples have no message with a basemessage")


def check(step: Step, answer: httpx.Response) -> None:
    """Raise where an answer is not what the step says."""
    if answer.status_code != step.status:
        raise Unexpected(
            f"{step.method} {step.path} answered {answer.status_code}, not {step.status}: {answer.text[:400]}"
        )
    if step.shows not in answer.text:
        raise Unexpected(f"{step.method} {step.path} did not show {step.shows}: {answer.text[:400]}")


def show(console: Console, number: int, step: Step, answer: httpx.Response, base: str) -> None:
    """Print a request and its answer, shortened."""
    console.print(f"\n[bold]{number}. {step.says}[/bold]")
    console.print(f"[cyan]$ {escape(_cut(step.as_curl(base), 400))}[/cyan]", highlight=False, soft_wrap=True)
    console.print(f"[green]HTTP {answer.status_code}[/green]", highlight=False)
    if answer.content:
        text = orjson.dumps(answer.json(), option=orjson.OPT_INDENT_2).decode()
        lines = [_cut(line, WIDTH) for line in text.splitlines()]
        rest = len(lines) - LINES
        shown = lines if rest <= 2 else [*lines[:LINES], f"  … {rest} more lines"]
        console.print(Syntax("\n".join(shown), "json", background_color="default"))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


@contextlib.contextmanager
def served(store: Path) -> Iterator[str]:
    """The address of a server of this store, started as a process of its own and stopped at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    log = store.with_suffix(".log")
    command = [sys.executable, "-m", "signalbook", "serve", "--store", str(store), "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(base, process, log)
        yield base
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(base: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{base}/healthz", timeout=2).is_success:
                return
        time.sleep(0.05)
    raise Unexpected(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


def walk_through(console: Console, folder: Path) -> None:
    """Load the samples into a store, serve it, and show each request with its answer; raises what went wrong."""
    store = folder / "demo.db"
    load = ["signalbook", "load", str(SAMPLES), "--store", "demo.db"]
    console.print(f"[bold]Load the sample catalog into a new store.[/bold]\n[cyan]$ {shlex.join(load)}[/cyan]")
    subprocess.run([sys.executable, "-m", *load[:-1], str(store)], check=True)
    console.print("\n[bold]Start the server.[/bold]\n[cyan]$ signalbook serve --store demo.db[/cyan]")
    with served(store) as base, httpx.Client(base_url=base, timeout=30) as client:
        console.print(f"listening at {base}/", highlight=False)
        for number, step in enumerate(walk(client), 1):
            answer = client.request(step.method, step.path, json=step.body, headers=step.headers)
            check(step, answer)
            show(console, number, step, answer, base)
