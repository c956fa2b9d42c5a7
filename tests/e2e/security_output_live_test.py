#!/usr/bin/env python3
"""Results of root go where root said: no link, pipe or file of another user in a shared folder takes them, and nobody else can read them."""
import os
import shutil
import stat
import subprocess
import tempfile

import harness

SECRET = "only root may change this\n"


class OutputTest(harness.LiveTest):
    NEEDS = ("setpriv",)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="clrsampler-output-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.chmod(self.folder, 0o755)
        self.secret = os.path.join(self.folder, "secret")
        with open(self.secret, "w") as f:
            f.write(SECRET)
        os.chmod(self.secret, 0o600)
        self.shared = os.path.join(self.folder, "shared")
        os.mkdir(self.shared)
        os.chmod(self.shared, 0o1777)
        self.nobodys = os.path.join(self.folder, "nobodys")
        os.mkdir(self.nobodys)
        os.chown(self.nobodys, harness.NOBODY, harness.NOBODY)
        self.enterContext(harness.busy_program())

    def as_nobody(self, *command):
        subprocess.run([*harness.AS_NOBODY, *command], check=True, timeout=300)

    def record(self, *options, env=None):
        agent = harness.Agent(("--duration", "200ms", *options), env=env, output=False)
        return agent.finish(120)

    def check_refused(self, result, reason):
        self.assertEqual(result.status, 1, result)
        self.assertIn(reason, result.err)
        with open(self.secret) as f:
            self.assertEqual(f.read(), SECRET, "another user chose where root wrote")

    def test_no_link_of_another_user_is_followed(self):
        for folder in (self.shared, self.nobodys):
            link = os.path.join(folder, "cpu.folded")
            self.as_nobody("ln", "-s", self.secret, link)
            for option in ("--output", "--stats", "--save-stream"):
                with self.subTest(option, folder=folder):
                    self.check_refused(self.record(option, link, *(() if option == "--output" else ("--output", "/dev/null"))), "it is a link")

    def test_no_file_or_pipe_of_another_user_is_written(self):
        path = os.path.join(self.shared, "cpu.folded")
        self.as_nobody("touch", path)
        self.check_refused(self.record("--output", path), "belongs to another user")
        self.assertEqual(os.path.getsize(path), 0)
        os.unlink(path)
        self.as_nobody("mkfifo", path)
        self.check_refused(self.record("--output", path), path)

    def test_files_of_root_are_closed_to_others(self):
        for name in ("cpu.folded", "cpu.html"):
            path = os.path.join(self.shared, name)
            stats = path + ".stats"
            self.assertEqual(self.record("--output", path, "--stats", stats).status, 0)
            for file in (path, stats):
                self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600, file)
                self.assertNotEqual(subprocess.run([*harness.AS_NOBODY, "cat", file], capture_output=True, timeout=300).returncode, 0)
            self.assertEqual(self.record("--output", path).status, 0, "a file of our own is written again")

    def test_a_person_who_used_sudo_can_read_the_result(self):
        caller = {"SUDO_UID": str(harness.NOBODY), "SUDO_GID": str(harness.NOBODY)}
        for folder in (self.shared, self.nobodys):
            path = os.path.join(folder, "mine.folded")
            self.assertEqual(self.record("--output", path, env=caller).status, 0)
            self.as_nobody("cat", path)
            self.assertEqual(os.stat(path).st_uid, harness.NOBODY)
            self.assertEqual(self.record("--output", path, env=caller).status, 0, "and write it again")


if __name__ == "__main__":
    harness.main()
