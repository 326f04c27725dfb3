"""Calls weir as a service with grpcio would, and prints the results as JSON in the format of ../interop-report.ts.

    python3 client.py PROTO_FOLDER ADDRESS [CA CERTIFICATE KEY]

The messages are generated from the protos at the start. With three PEM files, the connection uses TLS with a client
certificate. The line "watching" reports the first answer to the watch of the health service. The report follows when
weir has ended that stream.
"""

import json
import pathlib
import sys
import tempfile

import grpc
import grpc_tools
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_tools import protoc

BURST_SIZE = 200
TIMEOUT = 30  # seconds
SERVICE = "/envoy.service.ratelimit.v3.RateLimitService/"


def generate(protos, folder):
    """Makes the Python modules of every proto file below `protos`."""
    files = sorted(str(path) for path in pathlib.Path(protos).rglob("*.proto"))
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    arguments = [f"-I{protos}", f"-I{well_known}", f"--python_out={folder}", *files]
    if protoc.main(["protoc", *arguments]) != 0:
        raise RuntimeError("protoc failed")
    sys.path.insert(0, folder)
    from envoy.service.ratelimit.v3 import rls_pb2

    return rls_pb2


def open_channel(address, files):
    if not files:
        return grpc.insecure_channel(address)
    ca, certificate, key = (pathlib.Path(file).read_bytes() for file in files)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(ca, key, certificate))


def failure_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return {"status": error.code().value[0], "message": error.details()}
    return {"status": 0, "message": ""}


class Client:
    def __init__(self, rls, channel):
        self.rls = rls
        self.channel = channel
        self.should_rate_limit = self.method("ShouldRateLimit")

    def method(self, name):
        return self.channel.unary_unary(
            SERVICE + name,
            request_serializer=self.rls.RateLimitRequest.SerializeToString,
            response_deserializer=self.rls.RateLimitResponse.FromString,
        )

    def request(self, key, value):
        request = self.rls.RateLimitRequest(domain="interop")
        request.descriptors.add().entries.add(key=key, value=value)
        return request

    def decide(self, key, value):
        response = self.should_rate_limit(self.request(key, value), timeout=TIMEOUT)
        (status,) = response.statuses
        return {
            "code": self.rls.RateLimitResponse.Code.Name(response.overall_code),
            "limit": status.current_limit.requests_per_unit,
            "remaining": status.limit_remaining,
            "headers": {header.key: header.value for header in response.response_headers_to_add},
        }

    def burst(self):
        request = self.request("tenant", "python-burst")
        calls = [self.should_rate_limit.future(request, timeout=TIMEOUT) for _ in range(BURST_SIZE)]
        ok = sum(call.result().overall_code == self.rls.RateLimitResponse.OK for call in calls)
        return {"ok": ok, "overLimit": BURST_SIZE - ok}


def watch(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    names = health_pb2.HealthCheckResponse.ServingStatus
    report = {"watch": []}
    answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT)
    report["check"] = names.Name(answer.status)
    other = health_pb2.HealthCheckRequest(service="other")
    report["unknown"] = failure_of(lambda: stub.Check(other, timeout=TIMEOUT))["status"]

    def follow():
        for answer in stub.Watch(health_pb2.HealthCheckRequest(), timeout=TIMEOUT):
            report["watch"].append(names.Name(answer.status))
            if len(report["watch"]) == 1:
                print("watching", flush=True)

    report["watchEnd"] = failure_of(follow)["status"]
    return report


def main(protos, address, *files):
    with tempfile.TemporaryDirectory() as folder:
        rls = generate(protos, folder)
        with open_channel(address, files) as channel:
            client = Client(rls, channel)
            report = {
                "allowed": client.decide("tenant", "python"),
                "denied": client.decide("closed", "python"),
                "error": failure_of(
                    lambda: client.should_rate_limit(rls.RateLimitRequest(), timeout=TIMEOUT)
                ),
                "unknownMethod": failure_of(
                    lambda: client.method("Other")(rls.RateLimitRequest(), timeout=TIMEOUT)
                ),
                "burst": client.burst(),
                "services": sorted(ProtoReflectionDescriptorDatabase(channel).get_services()),
                "health": watch(channel),
            }
            print(json.dumps(report))


main(*sys.argv[1:])
