"""Talks to the server: client.py SCENE URL..., where a URL is as transports.py has it."""

import json
import re
import socket
import sys
import time
from collections import Counter
from pathlib import Path

from transports import Closed, connect

MESSAGES = {-32700: "Parse error", -32600: "Invalid Request", -32601: "Method not found"}
MESSAGES |= {-32602: "Invalid params", -32603: "Internal error"}


def call(method, params=None, id=None):
    request = {"jsonrpc": "2.0", "method": method}
    request |= {} if params is None else {"params": params}
    return json.dumps(request | ({} if id is None else {"id": id})).encode()


def answer(it):
    """The next message."""
    return json.loads(it.recv())


def ask(it, method, params=None, id=1):
    it.send(call(method, params, id))
    return answer(it)


# --- the table


def unfold(text):
    def repeated(match):
        if match[1] is not None:
            return bytes.fromhex(match[1].decode())
        return match[2] * int(match[3])

    return re.sub(rb"\{\{(?:hex:([0-9a-f ]+)|(.+?)\*(\d+))\}\}", repeated, text.encode())


def cases():
    """Returns name, input, and replies by the transport's name."""
    found = []
    for line in (Path(__file__).parent / "bad-inputs.txt").read_text().splitlines():
        if re.match(r"\s*(#|==|$)", line):
            continue
        kind = re.fullmatch(r"  (\w+ )?([<>]) ?(.*)", line)
        if kind is None:
            found.append((line, None, {}))
        elif kind[2] == ">":
            found[-1] = (found[-1][0], unfold(kind[3]), found[-1][2])
        else:
            found[-1][2][(kind[1] or "").strip()] = kind[3]
    assert all(sent is not None and "" in replies for _, sent, replies in found)
    return found


def wanted(text):
    short = re.fullmatch(r"(-\d+) (.+)", text)
    if short is None:
        return json.loads(text)
    code = int(short[1])
    return {"jsonrpc": "2.0", "error": {"code": code, "message": MESSAGES[code]}, "id": json.loads(short[2])}


def plain(reply):
    """Removes free texts of errors, and sorts a batch."""
    if isinstance(reply, list):
        return sorted(map(plain, reply), key=json.dumps)
    if "error" in reply:
        return reply | {"error": {key: value for key, value in reply["error"].items() if key != "data"}}
    return reply


def table(url):
    it = connect(url)
    wrong, count = [], 0
    for name, sent, replies in cases():
        count += 1
        reply = replies.get(it.name, replies[""])
        code = re.match(r"(?:status|close) (\d+) ?", reply)
        reply = reply[code.end() :] if code else reply
        try:
            it.send(sent)
            if code and it.name == "ws":
                try:
                    wrong.append(f"{name}: {it.recv()} instead of a close")
                except Closed as closed:
                    if closed.code != int(code[1]):
                        wrong.append(f"{name}: closed with {closed.code}")
            elif reply:
                got = it.recv()
                if plain(json.loads(got)) != plain(wanted(reply)):
                    wrong.append(f"{name}: {got[:300]} instead of {reply}")
            if it.name == "http" and it.status != int(code[1] if code else 200 if reply else 204):
                wrong.append(f"{name}: status {it.status}")
            if code:
                it = connect(url)
            # The connection is usable, and no other reply came.
            alive = ask(it, "echo", [count], f"alive {count}")
            if alive != {"jsonrpc": "2.0", "result": [count], "id": f"alive {count}"}:
                wrong.append(f"{name}: then {alive}")
                it = connect(url)
        except (Closed, OSError, IndexError, ValueError) as error:
            wrong.append(f"{name}: {error!r}")
            it = connect(url)
    assert count >= 60 and not wrong, "\n".join(wrong)
    print(f"{count} bad inputs over {url}")


# --- valid input


def basics(url):
    it = connect(url)
    assert ask(it, "sum", [1, 2, 4]) == {"jsonrpc": "2.0", "result": 7, "id": 1}
    assert ask(it, "echo", {"a": "ǝ\n🚴"}, "x")["result"] == {"a": "ǝ\n🚴"}
    assert ask(it, "echo")["result"] is None
    # Exactly as sent, to the last digit.
    it.send(b' {"id":12345678901234567890.50 , "params":[1.0, 1e2],"method":"echo","jsonrpc":"2.0"}\r')
    assert it.recv().strip() == b'{"jsonrpc":"2.0","result":[1.0, 1e2],"id":12345678901234567890.50}'
    # By pattern, on a strand.
    name = f"counter.{re.sub('[^a-z]', '', url)}"
    start = ask(it, f"{name}.get")["result"]
    assert [ask(it, f"{name}.add", [n])["result"] - start for n in (1, 10, -4)] == [1, 11, 7]
    # The whole batch, in one answer.
    it.send(b"[" + b",".join(call("sum", [n, 1], n) for n in range(100)) + b"," + call("echo", ["told"]) + b"]")
    assert {each["id"]: each["result"] for each in answer(it)} == {n: n + 1 for n in range(100)}
    assert ask(it, "block", [1])["result"] == "blocked"
    print(f"basics over {url}")


def duplicates(url):
    """An id is in use until its call is answered."""
    it = connect(url)
    it.send(call("sleep", [300], 7), call("sum", [1], 7), call("sum", [2], 8))
    first = [answer(it), answer(it)]
    assert {"jsonrpc": "2.0", "result": 2, "id": 8} in first, first
    other = next(each for each in first if each["id"] != 8)
    assert other["id"] is None and other["error"]["code"] == -32600, other
    assert answer(it) == {"jsonrpc": "2.0", "result": "slept", "id": 7}
    assert ask(it, "sum", [3], 7)["result"] == 3
    print(f"duplicates over {url}")


def push(*urls):
    """Subscribers get events from every transport, and the server may call them in turn."""
    topic = f"news-{time.time()}"
    hearers = [connect(url) for url in urls if not url.startswith("http")]
    for it in hearers:
        assert ask(it, "subscribe", [topic])["result"] is None
    for number, url in enumerate(urls):
        speaker = connect(url)
        # Newlines between tokens, which the line framing does not allow.
        message = b'{"jsonrpc":"2.0","method":"publish","params":["%s",{"a":%d}],"id":1}' % (topic.encode(), number)
        speaker.send(message if speaker.name == "lines" else message.replace(b",", b",\n").replace(b"{", b"{\n"))
        assert answer(speaker)["result"] == len(hearers)
        speaker.close()
        for it in hearers:
            told = answer(it)
            assert told == {"jsonrpc": "2.0", "method": "event", "params": [{"a": number}]}, told
    for it in hearers:
        it.send(call("ask", ["name", ["you"]], "asks"))
        question = answer(it)
        assert (question["method"], question["params"]) == ("name", ["you"]), question
        it.send(json.dumps({"jsonrpc": "2.0", "result": "a snake", "id": question["id"]}).encode())
        assert answer(it) == {"jsonrpc": "2.0", "result": "a snake", "id": "asks"}
        it.send(call("ask", ["name", []], "asks"))
        error = {"code": 5, "message": "no name"}
        it.send(json.dumps({"jsonrpc": "2.0", "error": error, "id": answer(it)["id"]}).encode())
        assert answer(it)["error"] == error
    gone = hearers.pop()
    gone.close()
    late = time.monotonic() + 30
    speaker = connect(urls[0])
    while ask(speaker, "publish", [topic, 1])["result"] != len(hearers):
        assert all(answer(it)["method"] == "event" for it in hearers)
        assert time.monotonic() < late, "a client that disconnected is still subscribed"
    assert all(answer(it)["method"] == "event" for it in hearers)
    for it in hearers:
        assert ask(it, "unsubscribe", [topic])["result"] is None
    assert ask(speaker, "publish", [topic, 1])["result"] == 0
    print(f"push over {', '.join(urls)}")


def cut(url):
    """Sends bytes one by one, and ends in the middle of a message."""
    it = connect(url)
    for byte in it.frame(call("sum", [1, 2], 1)) + it.frame(call("sum", [3], 2)):
        it.socket.sendall(bytes([byte]))
    assert sorted(answer(it)["result"] for _ in range(2)) == [3, 3]
    it.socket.sendall(it.frame(call("sleep", [100], 1)) + it.frame(call("echo", [], 2))[:-9])
    it.socket.shutdown(1)
    last = [answer(it), answer(it)]
    assert {"jsonrpc": "2.0", "result": "slept", "id": 1} in last, last
    assert any(each.get("error", {}).get("code") == -32700 for each in last), last
    try:
        raise AssertionError(f"{it.recv()} instead of the end")
    except Closed:
        print(f"cut over {url}")


# --- load

WINDOW = 100


def load(url, calls):
    """Each call is answered once, with its own answer."""
    calls, it, start = int(calls), connect(url), time.monotonic()
    answered = Counter()

    def take():
        reply = answer(it)
        assert reply["result"] == [reply["id"]], reply
        answered[reply["id"]] += 1

    for number in range(calls):
        if it.name != "http" and number >= WINDOW:
            # As many calls are on their way as allowed.
            take()
        it.send(call("echo", [number], number))
        if it.name == "http":
            take()
    while answered.total() < calls:
        take()
    seconds = time.monotonic() - start
    # No other answer comes.
    assert ask(it, "echo", id="last")["id"] == "last"
    assert len(answered) == calls and set(answered) == set(range(calls)) and answered.total() == calls
    print(f"{calls} calls over {url}: {calls / seconds:.0f}/s, none lost, none answered twice")


PATIENCE_OF_DEAF = 60


HANDSHAKE = b"""GET / HTTP/1.1\r
Host: here\r
Upgrade: websocket\r
Connection: Upgrade\r
Sec-WebSocket-Version: 13\r
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
\r
"""


def raw(it, message):
    """Returns the socket, and the encoded message."""
    if it.name == "ws":
        # The package has a thread that reads. A mask of zero leaves the payload unchanged.
        host, port = it.socket.remote_address
        it = socket.create_connection((host, port), 30)
        it.sendall(HANDSHAKE)
        assert it.recv(12) == b"HTTP/1.1 101"
        return it, b"\x81\xff" + len(message).to_bytes(8, "big") + bytes(4) + message
    if it.name == "http":
        it.connection.connect()
        head = f"POST / HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {len(message)}\r\n\r\n"
        return it.connection.sock, head.encode() + message
    return it.socket, it.frame(message)


def deaf(url):
    """Sends calls and never reads: until writes block, and then until the server disconnects."""
    it, sent = connect(url), 0
    it, frame = raw(it, call("echo", ["x" * 50_000], 1).replace(b'"id": 1', b'"id": null'))
    it.settimeout(PATIENCE_OF_DEAF)
    try:
        while sent < 1 << 30:
            rest = memoryview(frame)
            while rest:
                count = it.send(rest)
                sent, rest = sent + count, rest[count:]
    except TimeoutError:
        raise AssertionError(f"after {sent} bytes the server still waits") from None
    except OSError:
        print(f"{sent} bytes over {url}, and nothing heard")
    else:
        raise AssertionError(f"the server has taken {sent} bytes")


def deaf_hearer(url, other):
    """Subscribes and never reads. Other subscribers get all events."""
    topic, speaker, hearer = f"noise-{time.time()}", connect(other), connect(other)
    ask(hearer, "subscribe", [topic])
    if url.startswith("http"):
        it = connect(url)
        it.connection.request("GET", f"/?topic={topic}")
    else:
        it, frame = raw(connect(url), call("subscribe", [topic], 1))
        it.sendall(frame)
    while True:
        count = ask(speaker, "publish", [topic, "few"])["result"]
        answer(hearer)
        if count == 2:
            break
    told = 0
    while ask(speaker, "publish", [topic, "x" * 50_000])["result"] == 2:
        answer(hearer)
        told += 1
        assert told < 10_000, "it is not shown out"
    print(f"{told} events over {url}, and nothing heard")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
