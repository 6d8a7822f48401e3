"""Clients that report without a pause while a daemon is restarted under them, as a careful program would."""

import itertools
import json
import socket
import threading
import time


class Load:
    """Each client reports one thing after the other. Where its connection ends before the answer, or a daemon that is
    stopping answers `busy` on it, it sends the same report again under the same id, on a new connection. Being refused a
    connection is counted, and is a failure; so is any other refusal."""

    CLIENTS = 4
    CONNECT_SECONDS_MAX = 60

    def __init__(self, path):
        self.path = str(path)
        self.stored = [[] for _ in range(self.CLIENTS)]
        self.refusals = []
        self.reconnections = 0
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.client, args=(number,)) for number in range(self.CLIENTS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    @property
    def ids(self):
        return [name for ids in self.stored for name in ids]

    def count(self):
        return sum(map(len, self.stored))

    def client(self, number):
        connection = None
        for turn in itertools.count():
            name = f"client-{number}-{turn}"
            while not self.stopping.is_set():
                connection = connection or self.connect()
                answer = connection and self.ask(connection, name)
                if answer and answer.get("code") != "busy":
                    break
                if connection:
                    connection.close()
                    connection = None
                self.reconnections += 1
            if self.stopping.is_set():
                return connection and connection.close()
            if answer["status"] == "stored":
                self.stored[number].append(name)
            else:
                self.refusals.append(answer)

    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.CONNECT_SECONDS_MAX)
        try:
            connection.connect(self.path)
            return connection
        except OSError as error:
            self.refusals.append(f"connect: {error}")
            time.sleep(0.05)
            return None

    @staticmethod
    def ask(connection, name):
        """The answer; None where the connection ended first."""
        try:
            line = json.dumps({"type": "net", "reportId": name, "meta": {"name": name}}) + "\n"
            connection.sendall(line.encode())
            answer = b""
            while not answer.endswith(b"\n"):
                piece = connection.recv(65536)
                if not piece:
                    return None
                answer += piece
            return json.loads(answer)
        except (BrokenPipeError, ConnectionResetError):
            return None
