#!/usr/bin/env python3
"""Attacks a server without end, one attack after another, in an order that a seed decides.

Usage: hostile_peers.py ADDRESS SEED

At SIGTERM it prints how often it has attacked, and ends with 0. It ends with 1 when it cannot connect.
"""

import functools
import random
import signal
import sys
import time

from attacks import HEARTBEAT, JOIN_IN_PARTS, PUSH, STATE, WATCH, Stall, begin_calls, reset_calls, send_metadata
from http2_peer import PREFACE, Peer, bomb
from odd_metadata import odd_calls

PAUSE = 0.2  # seconds between two attacks: the machine has work to do, too
POURS = 40

hundred_megabytes = functools.lru_cache(lambda encoding: bomb(encoding, 100))


class Attacker:
    def __init__(self, address, seed):
        self.address = address
        self.random = random.Random(seed)
        self.attacks = 0

    def greeted(self, acknowledges=True):
        peer = Peer(self.address, acknowledges=acknowledges)
        peer.greet()
        return peer

    def compressed_bomb(self):
        encoding = self.random.choice(["gzip", "deflate"])
        peer = self.greeted()
        packed = [(b"grpc-encoding", encoding.encode())]
        peer.call(1, self.random.choice([HEARTBEAT, STATE]), hundred_megabytes(encoding), packed)
        peer.answer()
        return [peer]

    def resets(self):
        peer = self.greeted()
        reset_calls(peer, self.random.choice([WATCH, HEARTBEAT, PUSH, "/no/method"]))
        return [peer]

    def calls_without_end(self):
        peer = self.greeted(acknowledges=False)
        begin_calls(peer)
        return [peer]

    def metadata(self):
        peer = self.greeted(acknowledges=False)
        send_metadata(peer)
        return [peer]

    def odd_metadata(self):
        peer = self.greeted(acknowledges=self.random.choice([True, False]))
        for number, send in enumerate(self.random.sample(list(odd_calls()), 50)):
            send(peer, 2 * number + 1, self.random.choice([STATE, WATCH, HEARTBEAT, PUSH, "/no/method"]))
            peer.settle()
            if peer.closed:
                peer = self.greeted()
        return [peer]

    def messages_without_end(self):
        stall = Stall(self.greeted(), self.random.choice([HEARTBEAT, PUSH, JOIN_IN_PARTS]), calls=50)
        for _ in range(POURS):
            if not stall.peer.closed:
                stall.pour()
        return [stall.peer]

    def silent_crowd(self):
        return [Peer(self.address) for _ in range(100)]

    def garbage(self):
        peer = Peer(self.address)
        peer.send(self.random.choice([b"", PREFACE]) + self.random.randbytes(10_000))
        return [peer]

    def attack(self):
        kinds = [
            self.compressed_bomb,
            self.resets,
            self.calls_without_end,
            self.metadata,
            self.odd_metadata,
            self.messages_without_end,
            self.silent_crowd,
            self.garbage,
        ]
        for peer in self.random.choice(kinds)():
            peer.close()
        self.attacks += 1


class Stopped(Exception):
    """SIGTERM came."""


def stop(_signal, _frame):
    raise Stopped


def main():
    signal.signal(signal.SIGTERM, stop)
    attacker = Attacker(sys.argv[1], int(sys.argv[2]))
    try:
        while True:
            attacker.attack()
            time.sleep(PAUSE)
    except Stopped:
        print(f"attacks: {attacker.attacks}", flush=True)
    except OSError as error:
        sys.exit(f"hostile_peers.py: the server at {sys.argv[1]} does not answer: {error}")


if __name__ == "__main__":
    main()
