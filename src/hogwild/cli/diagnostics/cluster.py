"""``hogwild doctor --cluster``: the nodes of a Ray cluster, their versions, and the protection of the cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from hogwild.cli.diagnostics import Check
from hogwild.errors import MissingExtraError, WorkerError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hogwild.runtimes.ray.preflight import Preflight

MUST_AGREE = ("python", "ray", "hogwild")  # packages whose versions must be identical on all nodes
TOKEN_REMEDY = "Start all nodes with RAY_AUTH_MODE=token and the same RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH."
TLS_REMEDY = (
    "Start all nodes with RAY_USE_TLS=1, RAY_TLS_SERVER_CERT, RAY_TLS_SERVER_KEY and RAY_TLS_CA_CERT, or use a "
    "private network."
)


def inspect_cluster(address: str | None) -> tuple[dict[str, Any], list[Check]]:
    """Inspect a cluster: the named one, that of ``RAY_ADDRESS``, or one on this machine."""
    named = address or os.environ.get("RAY_ADDRESS") or "auto"
    found: dict[str, Any] = {"address": named, "nodes": [], "token": None, "tls": None}
    try:
        from hogwild.runtimes.ray.connection import checked, load, located

        load()
    except MissingExtraError as error:
        return found, [Check("ray", "error", "it is not installed here", str(error))]
    from hogwild.runtimes.ray.cluster_probe import probe_cluster
    from hogwild.runtimes.ray.preflight import preflight

    checked(named)
    try:
        found["address"] = located(named)
        found |= _protection(preflight(found["address"]))
        found |= probe_cluster(found["address"])
    except WorkerError as error:
        remedy = "Start one with 'ray start --head', or name its head: hogwild doctor --cluster HOST:PORT"
        return found, [Check("cluster", "error", str(error), remedy if "no Ray cluster" in str(error) else "")]
    return found, [*check_nodes(found["nodes"], found["mine"]), *check_protection(found)]


def _protection(found: Preflight) -> dict[str, Any]:
    if found.refusal:
        raise WorkerError(found.refusal)
    return {"token": found.token, "tls": found.tls}


def check_nodes(nodes: list[dict[str, Any]], mine: dict[str, Any]) -> list[Check]:
    """Check that all nodes respond and have the versions of this machine."""
    cpus = sum(node["cpus"] for node in nodes)
    checks = [Check("nodes", "ok", f"{len(nodes)} nodes with {cpus:g} CPUs")]
    for node in nodes:
        if "error" in node:
            checks.append(Check(_node_name(node), "error", node["error"], "See its logs, or remove it."))
            continue
        different = [name for name in MUST_AGREE if node[name] != mine[name]]
        if different:
            said = ", ".join(f"{name} {node[name] or 'is missing'}, here {mine[name]}" for name in different)
            remedy = "Install the same versions on all nodes: pip install -c constraints.txt 'hogwild[ray]'"
            checks.append(Check(_node_name(node), "error", said, remedy))
    if len(checks) == 1:
        said = ", ".join(f"{name} {mine[name]}" for name in MUST_AGREE)
        checks.append(Check("versions", "ok", f"the same on all nodes: {said}"))
    return checks


def check_protection(found: dict[str, Any]) -> list[Check]:
    """Check for authentication and encryption; on a loopback address their absence is a note, else a warning."""
    from hogwild.runtimes.ray.preflight import is_loopback

    off: Literal["note", "warning"] = "note" if is_loopback(found["address"]) else "warning"
    token = {
        True: Check("token", "ok", "clients need a token"),
        False: Check("token", off, f"any client that reaches {found['address']} can run code there", TOKEN_REMEDY),
        None: Check("token", off, "it is unknown whether clients need one", "pip install 'hogwild[ray]'"),
    }
    tls = {
        True: Check("TLS", "ok", "connections are encrypted, and both sides show certificates"),
        False: Check("TLS", off, "connections are not encrypted: data and token can be read", TLS_REMEDY),
        None: Check("TLS", off, "it is unknown whether connections are encrypted", "pip install 'hogwild[ray]'"),
    }
    return [token[found["token"]], tls[found["tls"]]]


def _node_name(node: dict[str, Any]) -> str:
    return f"node {node['node'][:8]}"


def nodes_table(found: dict[str, Any]) -> RenderableType:
    """Return a table of the nodes, one per line."""
    from rich.table import Table
    from rich.text import Text

    from hogwild.files import format_size

    table = Table("node", "host", "address", "CPUs", "memory", *MUST_AGREE, box=None, padding=(0, 2, 0, 0))
    for node in found["nodes"]:
        versions = [
            Text(str(node.get(name, "?")), "" if node.get(name) == found["mine"][name] else "bold red")
            for name in MUST_AGREE
        ]
        name = node["node"][:8] + (" (head)" if node["head"] else "")
        memory = format_size(node["memory"]) if node["memory"] else ""
        table.add_row(name, node["host"], node["address"], f"{node['cpus']:g}", memory, *versions)
    return table
