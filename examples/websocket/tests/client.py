"""A third-party WebSocket client (the package `websockets`) talks to the server at the given address."""

import sys
from concurrent.futures import ThreadPoolExecutor

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

URL = f"ws://{sys.argv[1]}"
MIB = 1 << 20


def client(path, **kwargs):
    # Proxies of the environment are for other programs.
    return connect(URL + path, open_timeout=30, close_timeout=30, max_size=None, proxy=None, **kwargs)


def closed_with(socket):
    """Returns the code of the server's close."""
    try:
        socket.recv(timeout=30)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None
    raise AssertionError("a message instead of a close")


def echoes():
    with client("/") as socket:
        for message in ["hello", "", "ǝɥʇ ʇxǝʇ 🚴", b"", bytes(range(256)), b"x" * 65535, b"y" * 65536, "z" * MIB]:
            socket.send(message)
            assert socket.recv(timeout=30) == message, f"{message[:40]} was not echoed"
        # In fragments, some of which split a character.
        socket.send(["frag", "ments ", "of one message"])
        assert socket.recv(timeout=30) == "fragments of one message"
        assert socket.ping(b"are you there?").wait(30), "no pong"
        # Many at once, in order.
        for number in range(1000):
            socket.send(str(number))
        for number in range(1000):
            assert socket.recv(timeout=30) == str(number)
    assert socket.close_code == 1000, socket.close_code


def too_much():
    with client("/", compression=None) as socket:
        try:
            socket.send(b"x" * (17 * MIB))
        except ConnectionClosed:
            pass  # It may say so before it has read all of it.
        assert closed_with(socket) == 1009


def many():
    def one(number):
        with client("/") as socket:
            for turn in range(20):
                socket.send(f"{number} {turn}")
                assert socket.recv(timeout=30) == f"{number} {turn}"

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(one, range(100)))


def chat():
    with client("/chat") as first, client("/chat") as second, client("/") as stranger:
        # Messages from before a member's arrival do not reach it, so both repeat theirs until they were
        # received.
        for speaker, hearer in [(first, second), (second, first)]:
            speaker.send("hello")
            assert hearer.recv(timeout=30).endswith(": hello")
        third = client("/chat")
        third.send("I am new")
        heard = {member.recv(timeout=30) for member in (first, second)}
        assert len(heard) == 1 and heard.pop().endswith(": I am new")
        third.close()
        first.send("is it gone?")
        assert second.recv(timeout=30).endswith(": is it gone?")
        stranger.send("only the echo returns this")
        assert stranger.recv(timeout=30) == "only the echo returns this"


def slow_member():
    """A member that does not read is disconnected, and the others receive everything."""
    with client("/chat") as speaker, client("/chat") as hearer, client("/chat", max_queue=1) as slow:
        slow.send("the last words")
        for member in (speaker, hearer):
            assert member.recv(timeout=30).endswith(": the last words")
        words = "w" * 60_000
        for _ in range(1000):
            speaker.send(words)
            assert hearer.recv(timeout=30).endswith(words)
        heard = 0
        try:
            while True:
                slow.recv(timeout=30)
                heard += 1
        except ConnectionClosed as closed:
            assert heard < 1000 and closed.rcvd and closed.rcvd.code == 1008, (heard, closed)


for scene in (echoes, too_much, many, chat, slow_member):
    scene()
    print(scene.__name__, "passed", flush=True)
