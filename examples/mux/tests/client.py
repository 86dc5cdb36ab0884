"""A client written from the README alone: python3 client.py HOST:PORT"""

import socket
import struct
import sys

HELLO, OPEN, DATA, CREDIT, FIN, RESET, PING, PONG, GOODBYE = range(1, 10)
WINDOW = 50_000


class Connection:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.come = b""
        self.next = 1
        # Frames that were read while another one was awaited.
        self.others = []
        self.send(HELLO, 0, b"plmx" + struct.pack(">III", 1, WINDOW, 0))
        kind, stream, hello = self.frame()
        assert (kind, stream, hello[:8]) == (HELLO, 0, b"plmx\0\0\0\1"), (kind, stream, hello)
        self.window, self.streams = struct.unpack(">II", hello[8:])

    def send(self, kind, stream, payload=b"", step=None):
        frame = struct.pack(">BBHI", kind, 0, len(payload), stream) + payload
        for at in range(0, len(frame), step or len(frame)):
            self.socket.sendall(frame[at : at + (step or len(frame))])

    def exactly(self, count):
        while len(self.come) < count:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError(self.come)
            self.come += more
        some, self.come = self.come[:count], self.come[count:]
        return some

    def frame(self):
        kind, zero, length, stream = struct.unpack(">BBHI", self.exactly(8))
        assert zero == 0
        return kind, stream, self.exactly(length)

    def wait(self, stream, *kinds):
        """Returns the next frame of these kinds for a stream, and keeps frames before it."""
        for at, other in enumerate(self.others):
            if other[1] == stream and other[0] in kinds:
                del self.others[at]
                return other[0], other[2]
        while True:
            kind, of, payload = self.frame()
            if of == stream and kind in kinds:
                return kind, payload
            self.others.append((kind, of, payload))

    def open(self, service):
        stream = self.next
        self.next += 2
        self.send(OPEN, stream)
        self.send(DATA, stream, service + b"\n")
        return stream

    def read(self, stream, count):
        """Returns so many bytes, or fewer if the stream ends. Gives credit for them at once."""
        some = b""
        while len(some) < count:
            kind, payload = self.wait(stream, DATA, FIN, RESET)
            if kind == FIN:
                break
            assert kind == DATA, (kind, payload)
            some += payload
            self.send(CREDIT, stream, struct.pack(">I", len(payload)))
        return some

    def end(self):
        """Returns all bytes before the server closes the connection."""
        try:
            while True:
                self.others.append(self.frame())
        except EOFError:
            return self.others


def passed(what):
    print("passed:", what)


def main(address):
    connection = Connection(address)

    stream = connection.open(b"echo")
    connection.send(DATA, stream, b"cut anywhere", step=1)
    assert connection.read(stream, 12) == b"cut anywhere"
    connection.send(FIN, stream)
    assert connection.read(stream, 1) == b"", "it ends as well"
    passed("an echo, byte by byte")

    # More than the window, as credit arrives.
    stream, left, sent, message = connection.open(b"count"), connection.window - 6, 0, b"m" * 16384
    while sent < 1_000_000:
        while left < len(message):
            left += struct.unpack(">I", connection.wait(stream, CREDIT)[1])[0]
        connection.send(DATA, stream, message)
        left, sent = left - len(message), sent + len(message)
    connection.send(FIN, stream)
    assert connection.read(stream, 100) == b"%d\n" % sent
    passed("a megabyte, by credit, and an answer after the end")

    # A stream with a full window, and others beside it.
    slow, left = connection.open(b"slow"), connection.window - 5
    while left:
        size = min(left, 16384)
        connection.send(DATA, slow, b"s" * size)
        left -= size
    streams = [connection.open(b"echo") for _ in range(100)]
    for number in range(5):
        for stream in streams:
            connection.send(DATA, stream, b"%d of %d" % (number, stream))
        for stream in reversed(streams):
            wanted = b"%d of %d" % (number, stream)
            assert connection.read(stream, len(wanted)) == wanted
    for stream in streams:
        connection.send(RESET, stream, b"\0\0\0\0")
    connection.send(RESET, slow, b"\0\0\0\0")
    # Each ended stream makes room for another one.
    back = 0
    while back < 100:
        back += struct.unpack(">I", connection.wait(0, CREDIT)[1])[0]
    passed("a hundred streams beside one that is hardly read")

    # This client does not read an echo: the server stops sending when the window is full, and sends no ping
    # meanwhile.
    stream = connection.open(b"echo")
    connection.send(DATA, stream, message)
    echoed = 0
    for _ in range(4):
        connection.send(DATA, stream, message[:12000])
    while echoed < WINDOW:
        echoed += len(connection.wait(stream, DATA)[1])
    assert echoed == WINDOW, echoed
    connection.send(PING, 0, b"question")
    assert connection.wait(0, PONG)[1] == b"question"
    assert not any(other[:2] == (DATA, stream) for other in connection.others), "the window is full"
    connection.send(RESET, stream, b"\0\0\0\0")
    passed("a window that is full, and a ping that is answered")

    stream = connection.open(b"nonsense")
    assert connection.wait(stream, RESET)[1] == struct.pack(">I", 16)
    passed("an unknown service")

    connection.send(GOODBYE, 0, b"\0\0\0\0")
    connection.socket.shutdown(socket.SHUT_WR)
    assert (GOODBYE, 0, b"\0\0\0\0") in connection.end()
    passed("GOODBYE")

    connection = Connection(address)
    stream = connection.open(b"slow")
    for _ in range(connection.window // 16384 + 2):
        connection.send(DATA, stream, message)
    kind, of, payload = connection.end()[-1]
    assert (kind, of, payload[:4]) == (GOODBYE, 0, b"\0\0\0\2"), (kind, of, payload)
    passed("the window is no suggestion: " + payload[4:].decode())

    connection = Connection(address)
    for _ in range(connection.streams + 1):
        connection.open(b"slow")
    kind, of, payload = connection.end()[-1]
    assert (kind, of, payload[:4]) == (GOODBYE, 0, b"\0\0\0\3"), (kind, of, payload)
    passed("nor is the number of streams: " + payload[4:].decode())


main(sys.argv[1])
