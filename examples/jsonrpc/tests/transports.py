"""The transports with third-party clients: sockets and http.client of Python, the packages `websockets` and `pika`."""

import http.client
import socket
import struct
import uuid
from urllib.parse import parse_qs, urlsplit

PATIENCE = 30


class Closed(Exception):
    """The server has ended the connection; with this code, where the transport has codes."""

    def __init__(self, code=None):
        super().__init__(code)
        self.code = code


class Lines:
    """JSON in lines, over TCP or a Unix socket."""

    name = "lines"

    def __init__(self, address):
        if isinstance(address, tuple):
            self.socket = socket.create_connection(address, PATIENCE)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            self.socket.connect(address)
        self.read = self.socket.makefile("rb", 1 << 16)

    def frame(self, message):
        return message + b"\n"

    def send(self, *messages):
        self.socket.sendall(b"".join(map(self.frame, messages)))

    def recv(self):
        line = self.read.readline()
        if not line.endswith(b"\n"):
            raise Closed
        return line

    def close(self):
        self.read.close()
        self.socket.close()


class Lengths(Lines):
    """The same, with a length before each message."""

    name = "lengths"

    def frame(self, message):
        return struct.pack(">I", len(message)) + message

    def recv(self):
        head = self.read.read(4)
        if len(head) < 4:
            raise Closed
        return self.read.read(struct.unpack(">I", head)[0])


class Http:
    """A POST for each message, one after the other on one connection."""

    name = "http"

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(*address, timeout=PATIENCE)
        self.answers = []

    def send(self, *messages):
        for message in messages:
            try:
                self.connection.request("POST", "/", message, {"content-type": "application/json"})
                response = self.connection.getresponse()
            except (ConnectionError, http.client.HTTPException):
                raise Closed from None
            body = response.read()
            self.status = response.status
            if self.status == 204:
                assert body == b"", body
            else:
                assert response.getheader("content-type") == "application/json", response.headers
                self.answers.append(body)

    def recv(self):
        return self.answers.pop(0)

    def close(self):
        self.connection.close()


class WebSocket:
    name = "ws"

    def __init__(self, address):
        from websockets.sync.client import connect

        url = "ws://%s:%s/" % address
        # Proxies of the environment are for other programs.
        self.socket = connect(url, open_timeout=PATIENCE, close_timeout=PATIENCE, max_size=None, compression=None, proxy=None)

    def send(self, *messages):
        from websockets.exceptions import ConnectionClosed

        for message in messages:
            try:
                try:
                    self.socket.send(message.decode())
                except UnicodeDecodeError:
                    self.socket.send(message)
            except ConnectionClosed:
                return  # The receiver reads the server's reply.

    def recv(self):
        from websockets.exceptions import ConnectionClosed

        try:
            message = self.socket.recv(timeout=PATIENCE)
        except ConnectionClosed as closed:
            raise Closed(closed.rcvd.code if closed.rcvd else None) from None
        assert isinstance(message, str), "an answer is text"
        return message.encode()

    def close(self):
        self.socket.close()


class Amqp:
    """A queue for the server, and one for this client."""

    name = "amqp"

    def __init__(self, url):
        import pika

        self.pika, parts = pika, urlsplit(url)
        self.queue = parse_qs(parts.query)["queue"][0]
        where = pika.ConnectionParameters(parts.hostname, parts.port, blocked_connection_timeout=PATIENCE)
        self.connection = pika.BlockingConnection(where)
        self.channel = self.connection.channel()
        self.ours = self.channel.queue_declare("", exclusive=True).method.queue
        self.deliveries = self.channel.consume(self.ours, auto_ack=True, inactivity_timeout=PATIENCE)
        self.waits = {}

    def send(self, *messages):
        for message in messages:
            properties = self.pika.BasicProperties(reply_to=self.ours, correlation_id=str(uuid.uuid4()))
            self.channel.basic_publish("", self.queue, message, properties)

    def recv(self):
        method, properties, body = next(self.deliveries)
        assert method is not None, "nothing comes"
        return body

    def close(self):
        self.channel.cancel()
        self.connection.close()


def connect(url):
    """By name: lines://HOST:PORT, lengths://..., lines:PATH, lengths:PATH, http://..., ws://..., amqp://..."""
    scheme, _, rest = url.partition(":")
    kinds = {kind.name: kind for kind in (Lines, Lengths, Http, WebSocket)}
    if scheme == "amqp":
        return Amqp(url)
    if not rest.startswith("//"):
        return kinds[scheme](rest)
    host, _, port = rest[2:].rpartition(":")
    return kinds[scheme]((host, int(port)))
