"""A container runtime for tests: the two calls of the Kubernetes Container Runtime Interface that are asked, by grpcio on a Unix socket.

As a program: cri_server.py SOCKET MANNER ID=NAMESPACE/POD/CONTAINER/IMAGE...      ends when its input does; a line for each call

    good        what it is asked
    liar        an answer about another container
    garbage     bytes that are no message
    endless     an answer of 3 MiB
    old         UNIMPLEMENTED: it speaks an older version only
    hang        no answer
"""
import concurrent.futures
import os
import socket
import subprocess
import sys
import tempfile
import threading

import raw_server

SERVICE = "/runtime.v1.RuntimeService/"


def varint(number):
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def field(number, data):
    data = data if isinstance(data, bytes) else data.encode()
    return varint(number << 3 | 2) + varint(len(data)) + data


def sandbox_of(identifier):
    return identifier[::-1]


def container(identifier, name, image):
    """A Container, as containerd fills it: the image is an id, and what the pod's author wrote stands beside it."""
    label = field(1, "io.kubernetes.container.name") + field(2, "label-of-anybody")
    return field(1, identifier) + field(2, sandbox_of(identifier)) + field(3, field(1, name) + b"\x10\x02") + \
        field(4, field(1, "sha256:" + "c" * 64) + field(18, image)) + field(5, "sha256:" + "c" * 64) + b"\x30\x01" + field(8, label)


def sandbox(identifier, namespace, pod):
    return field(1, sandbox_of(identifier)) + field(2, field(1, pod) + field(2, "uid") + field(3, namespace))


class CriServer:
    """`calls`: what was asked, a line each. containers: id -> (namespace, pod, container, image)."""

    def __init__(self, python, containers, manner="good"):
        self.folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        self.socket = os.path.join(self.folder.name, "cri.sock")
        self.python, self.containers, self.manner, self.calls = python, containers, manner, []

    def start(self):
        items = [f"{identifier}={'|'.join(names)}" for identifier, names in self.containers.items()]
        self.process = subprocess.Popen([self.python, os.path.abspath(__file__), self.socket, self.manner, *items],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError("the container runtime of the test does not start")
        self.thread = threading.Thread(target=self.read, args=(self.process.stdout,))
        self.thread.start()

    def read(self, lines):
        self.calls.extend(line.strip() for line in lines)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.thread.join()
        self.process.stdout.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()


class RawRuntime(raw_server.RawServer):
    def __init__(self, says):
        self.folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        self.socket = os.path.join(self.folder.name, "cri.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.socket)
        listener.listen(16)
        super().__init__(says, listener)

    def __exit__(self, *_):
        super().__exit__()
        self.folder.cleanup()


def main():
    import grpc  # pylint: disable=import-outside-toplevel  # the tests' own interpreter may lack it

    path, manner, *items = sys.argv[1:]
    containers = {identifier: names.split("|") for identifier, _, names in (item.partition("=") for item in items)}
    ending, lock = threading.Event(), threading.Lock()

    def answer(method, request):
        """Requests have one field, the filter, and this has one, the id."""
        wanted = request[4:].decode()
        with lock:
            print(method, wanted, flush=True)
        if manner == "hang":
            ending.wait()
        if manner == "garbage":
            return b"<html>\xff"
        if manner == "endless":
            return field(1, bytes(3 << 20))
        if manner == "liar":
            other = "e" * 64
            return field(1, container(other, "lie", "lie:1") if method == "ListContainers" else sandbox(other, "lie", "lie"))
        for identifier, (namespace, pod, name, image) in containers.items():
            if method == "ListContainers" and wanted == identifier:
                return field(1, container(identifier, name, image))
            if method == "ListPodSandbox" and wanted == sandbox_of(identifier):
                return field(1, sandbox(identifier, namespace, pod))
        return b""

    class Runtime(grpc.GenericRpcHandler):
        def service(self, call):
            method = call.method.removeprefix(SERVICE)
            if manner == "old" or method not in ("ListContainers", "ListPodSandbox"):
                return None
            return grpc.unary_unary_rpc_method_handler(lambda request, _: answer(method, request))

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((Runtime(),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    os.chmod(path, 0o660)  # as containerd's: root's
    print("ready", flush=True)
    sys.stdin.read()
    ending.set()
    server.stop(0).wait()


if __name__ == "__main__":
    main()
