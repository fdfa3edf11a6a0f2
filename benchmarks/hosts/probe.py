"""Between two hosts: how long a packet takes there and back, and how many are lost. Run on one of them.

python -m benchmarks.hosts.probe echo ADDRESS
python -m benchmarks.hosts.probe ask ADDRESS PACKETS
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import time

PORT = 7007
EVERY = 0.002  # seconds between two packets
PATIENCE = 1.0  # seconds for the last ones


def echo(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind((address, PORT))
        print("up", flush=True)
        while True:
            here.sendto(*here.recvfrom(64))


def ask(address: str, packets: int) -> dict[str, float]:
    """Packets are lost on the way there or on the way back: each way has the same share of that."""
    sent, took = {}, []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.setblocking(False)
        over = time.monotonic() + EVERY * packets + PATIENCE
        due, number = time.monotonic(), 0
        while time.monotonic() < over:
            if number < packets and time.monotonic() >= due:
                sent[number], due = time.monotonic(), due + EVERY
                here.sendto(number.to_bytes(4, "big"), (address, PORT))
                number += 1
            try:
                answer = int.from_bytes(here.recv(64), "big")
                took.append(time.monotonic() - sent[answer])
            except BlockingIOError:
                time.sleep(EVERY / 4)
    arrived = len(took) / packets
    return {"round_trip": statistics.median(took) if took else float("inf"), "lost_one_way": 1 - arrived**0.5}


if __name__ == "__main__":
    if sys.argv[1] == "echo":
        echo(sys.argv[2])
    print(json.dumps(ask(sys.argv[2], int(sys.argv[3]))))
