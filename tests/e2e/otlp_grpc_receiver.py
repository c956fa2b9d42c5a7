"""The profiles service of a collector by grpcio, as a process of its own: otlp_receivers.py says what manners are.

usage: otlp_grpc_receiver.py FOLDER MANNER,... [CERTIFICATE KEY]      ends when its input does

The first line is {"port": N}, each further one a request: {"file": its message, "manner": ..., "headers": ...}.
"""
import concurrent.futures
import json
import os
import sys
import threading
import time

import grpc

METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
PARTIAL = b"\x0a\x0e\x08\x01\x12\x0aone is bad"
RETRY_TYPE = b"type.googleapis.com/google.rpc.RetryInfo"


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


# google.rpc.Status {code: 8, details: [RetryInfo {retry_delay {seconds: 1}}]}
DETAILS = b"\x08\x08" + field(3, field(1, RETRY_TYPE) + field(2, field(1, b"\x08\x01")))


class Service(grpc.GenericRpcHandler):
    def __init__(self, folder, manners):
        self.folder, self.manners, self.count, self.lock, self.ending = folder, manners, 0, threading.Lock(), threading.Event()

    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(self.export) if call.method == METHOD else None

    def export(self, message, context):
        with self.lock:
            manner = self.manners.pop(0) if self.manners else "take"
            self.count += 1
            path = os.path.join(self.folder, f"{self.count}.otlp")
            with open(path, "wb") as file:
                file.write(message)
            headers = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
            print(json.dumps({"file": path, "manner": manner, "headers": headers}), flush=True)
        if manner == "again":
            context.set_trailing_metadata((("grpc-status-details-bin", DETAILS),))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "slow down")
        if manner == "down":
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        if manner == "refuse":
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not you, 100 %")
        if manner == "hang":
            self.ending.wait()
        if manner == "slow":
            time.sleep(1)
        return {"partial": PARTIAL, "garbage": b"<html>\xff"}.get(manner, b"")


def main():
    folder, manners, *certificate = sys.argv[1:]
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    service = Service(folder, [manner for manner in manners.split(",") if manner])
    server.add_generic_rpc_handlers((service,))
    if certificate:
        texts = []
        for path in certificate:
            with open(path, "rb") as file:
                texts.append(file.read())
        port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([(texts[1], texts[0])]))
    else:
        port = server.add_insecure_port("localhost:0")
    server.start()
    print(json.dumps({"port": port}), flush=True)
    sys.stdin.read()
    service.ending.set()
    server.stop(0).wait()


if __name__ == "__main__":
    main()
