"""A server that says the same bytes to whatever connects."""
import contextlib
import queue
import socket
import threading


class RawServer:
    """Takes connections and says these bytes, whatever comes; then it says nothing more. `connections`: how many came."""

    def __init__(self, says, listener):
        """listener: a socket that listens."""
        self.says, self.listener, self.connections, self.open = says, listener, 0, queue.Queue()
        self.thread = threading.Thread(target=self.accept)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                one, _ = self.listener.accept()
                self.connections += 1
                self.open.put(one)
                with contextlib.suppress(OSError):
                    one.sendall(self.says)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        while not self.open.empty():
            self.open.get().close()
