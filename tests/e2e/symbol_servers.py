"""Symbol servers of the tests: one that speaks debuginfod and SSQP on loopback, and all that can be wrong with one."""
import http.server
import socket
import struct
import threading
import uuid


def build_id(path):
    """The build-id of an ELF64 file: the descriptor of the note GNU, type 3."""
    with open(path, "rb") as f:
        data = f.read()
    at = data.index(b"\x14\0\0\0\x03\0\0\0GNU\0")  # 20 bytes of build-id
    size, = struct.unpack_from("<I", data, at)
    return data[at + 12:at + 12 + size].hex()


class Server:
    """files: path below the server's root -> bytes. `behave(handler, path)` may answer a request in its own way and say True. tls: an
    ssl.SSLContext; the server is then called localhost."""

    def __init__(self, files=(), behave=None, tls=None):
        self.files = dict(files)
        self.requests = []
        self.released = threading.Event()  # set when the test is over: what hangs until then hangs for ever
        self.broken_off = threading.Event()  # a client went away in the middle of an answer
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.requests.append(self.path)
                try:
                    if behave and behave(self, self.path):
                        return
                    content = outer.files.get(self.path)
                    self.send_response(200 if content is not None else 404)
                    self.send_header("Content-Length", str(len(content or b"")))
                    self.end_headers()
                    self.wfile.write(content or b"")
                except OSError:
                    outer.broken_off.set()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
            self.url = f"https://localhost:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def hang(self, handler, _path):
        """Says that much will come, and then nothing does."""
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        handler.wfile.write(b"\x7fELF")
        handler.wfile.flush()
        self.released.wait()
        return True

    def endless(self, handler, _path):
        """A body that does not end and has no length."""
        handler.send_response(200)
        handler.end_headers()
        block = b"\x7fELF" + b"\0" * 65532
        while not self.released.is_set():
            handler.wfile.write(block)
        return True

    @staticmethod
    def redirect_loop(handler, path):
        handler.send_response(302)
        handler.send_header("Location", path + "x")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def debuginfod_path(build_id_text):
    return f"/buildid/{build_id_text}/debuginfo"


def ssqp_debug_path(build_id_text):
    return f"/_.debug/elf-buildid-sym-{build_id_text}/_.debug"


def ssqp_image_path(name, build_id_text):
    return f"/{name}/elf-buildid-{build_id_text}/{name}"


def pdb_id_place(pdb):
    """Where the id of a portable PDB begins: the stream "#Pdb" does with it."""
    at = pdb.index(b"#Pdb")
    return struct.unpack_from("<I", pdb, at - 8)[0]


def ssqp_pdb_path(name, pdb):
    at = pdb_id_place(pdb)
    return f"/{name}/{uuid.UUID(bytes_le=pdb[at:at + 16]).hex}ffffffff/{name}"


_bound = []


def closed_port():
    """The address of a server that is down. The port stays ours, so that no other test's server gets it."""
    _bound.append(socket.socket())
    _bound[-1].bind(("127.0.0.1", 0))
    return f"http://127.0.0.1:{_bound[-1].getsockname()[1]}"
