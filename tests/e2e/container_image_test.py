#!/usr/bin/env python3
"""The image of deploy/docker, built without a registry: its base is a fresh Debian, and its package is the one of this build. It runs with the
capabilities that docs/operations.md names, and records a service of the host. Needs root, buildah, debootstrap and a mirror."""
import json
import os
import re
import subprocess
import tempfile

import folded
import fresh_system
import harness
import runtimes

CONTAINERFILE = os.path.join(runtimes.SOURCE, "deploy", "docker", "Containerfile")
OPERATIONS = os.path.join(runtimes.SOURCE, "docs", "operations.md")


def documented_options():
    """The options in place of --privileged, as the document has them."""
    with open(OPERATIONS, encoding="utf-8") as f:
        return re.findall(r"--cap-(?:drop|add)=\w+|--security-opt seccomp=\w+", f.read())


class ContainerImageTest(fresh_system.FreshSystemTest):
    NEEDS = ("buildah", "debootstrap", "cpack")

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="clrsampler-test-"))
        # The mount of a layer must not outlive the folder.
        self.addCleanup(subprocess.run, self.buildah("umount", "--all"), capture_output=True, timeout=60)

    def buildah(self, *arguments):
        """A command with images of its own. vfs needs no file system that stacks others."""
        return ["buildah", "--root", os.path.join(self.folder, "images"), "--runroot", os.path.join(self.folder, "run"), "--storage-driver", "vfs",
                *arguments]

    def make_image(self, name, folder):
        """An image whose files are those of the folder."""
        container = self.must(*self.buildah("from", "scratch")).strip()
        self.must(*self.buildah("add", "--quiet", container, folder, "/"))
        self.must(*self.buildah("commit", "--quiet", container, name))
        self.must(*self.buildah("rm", container))

    def build(self):
        system, packages = (os.path.join(self.folder, name) for name in ("system", "packages"))
        self.make_system(system)
        self.make_image("docker.io/library/debian:bookworm-slim", system)
        os.makedirs(place := os.path.join(packages, "packages"))
        package = self.build_package(os.path.join(self.folder, "package"))
        os.rename(package, os.path.join(place, os.path.basename(package)))
        self.make_image("localhost/packages", packages)
        self.must(*self.buildah("build", "--pull-never", "--isolation", "chroot", "--build-arg", "PACKAGES=localhost/packages", "--file", CONTAINERFILE,
                                "--tag", "clrsampler", os.path.dirname(CONTAINERFILE)))

    def test_it_is_built_and_names_a_service_of_the_host(self):
        self.build()
        with self.subTest("what it says of itself"):
            config = json.loads(self.must(*self.buildah("inspect", "--type", "image", "clrsampler")))["OCIv1"]["config"]
            self.assertEqual(config["Entrypoint"] + config["Cmd"], ["clrsampler", "serve", "--config", "/etc/clrsampler/serve.conf"])
            self.assertEqual((list(config["Volumes"]), list(config["ExposedPorts"])), (["/var/lib/clrsampler"], ["9404/tcp"]))
            self.assertEqual(config["StopSignal"], "SIGTERM")
        options = documented_options()
        self.assertEqual(len(options), 7, options)
        options = [word for option in options for word in option.split()]
        container = self.must(*self.buildah("from", "--isolation", "chroot", *options, "clrsampler")).strip()
        with self.subTest("it records"), harness.workload(runtimes.PACKED_VERSIONS[-1], "split", "--seconds", 60) as target:
            done = subprocess.run(self.buildah("run", "--isolation", "chroot", container, "--", "clrsampler", "record", "--pid", str(target.host_pid),
                                               "--duration", "3s", "--frequency", "199", "-o", "-"), capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            profile = folded.parse(done.stdout)
            self.assertGreater(profile.total, 100)
            named = sum(count for frames, count in profile.stacks if any("Workload." in frame for frame in frames))
            # Its one thread does nothing but call methods of its own, or is stopped below one.
            self.assertGreater(named, 0.95 * profile.total, done.stdout[:4000])


if __name__ == "__main__":
    harness.main()
