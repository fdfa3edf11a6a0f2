"""Run within a world: what two hosts see of each other when the network is calm, rough, cut and healed; as JSON."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.hosts import world

PROBE = (sys.executable, "-m", "benchmarks.hosts.probe")


def main(kind: str, out: Path) -> None:
    network = world.wire(kind)
    with world.hosts(network, ["alpha", "beta", "gamma"]) as (alpha, beta, gamma):
        echo = alpha.start(*PROBE, "echo", alpha.address, stdout=subprocess.PIPE)
        echo.stdout.readline()

        def ask(host=beta):
            return json.loads(host.run(*PROBE, "ask", alpha.address, "1000"))

        seen = {"calm": ask()}
        network.cut(beta)
        seen["cut"], seen["the others"] = ask(), ask(gamma)
        network.heal(beta)
        seen["healed"] = ask()
        if kind == "relay" or world.has_netem():
            network.weather(0.02, 0.01)
            seen["rough"] = ask()
        out.write_text(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
