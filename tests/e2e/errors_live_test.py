#!/usr/bin/env python3
"""Errors are said in one sentence and one hint, with the right exit status and in time."""
import os
import signal
import subprocess
import tempfile

import folded
import harness


class ErrorsTest(harness.LiveTest):
    NEEDS = ("minijit",)

    def run_agent(self, *arguments, prefix=(), agent=None, timeout=150):
        return subprocess.run([*prefix, agent or harness.AGENT, *arguments], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def check_error(self, done, status=1, mentions=""):
        self.assertEqual(done.returncode, status, done)
        lines = done.stderr.strip().splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        hints = [line for line in lines if line.strip().startswith("hint: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertEqual(len(hints), 1, done.stderr)
        self.assertGreater(len(errors[0]), 20, done.stderr)
        self.assertIn(mentions.lower(), done.stderr.lower())
        self.assertEqual(done.stdout, "", "nothing on standard output but folded text")

    def test_not_root(self):
        with self.agent_for_nobody() as agent:
            done = self.run_agent("--pid", str(os.getpid()), "--duration", "1s", agent=agent, prefix=harness.AS_NOBODY)
        self.check_error(done, mentions="sudo")

    def test_no_such_pid(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.check_error(self.run_agent("--pid", str(process.pid), "--duration", "1s"), mentions=str(process.pid))

    def test_command_that_does_not_exist(self):
        self.check_error(self.run_agent("--", "/no/such/program"), mentions="/no/such/program")

    def test_command_that_exits_at_once(self):
        done = self.run_agent("--duration", "10m", "--", "true")  # must not wait for the ten minutes
        # A sample in 100 hits so short a life. Where none did, that is said, with a hint.
        self.assertIn("hint: " if not done.stdout else "1 process", done.stderr)
        self.assertIn(done.returncode, (0, 1))
        self.assertEqual(folded.check(done.stdout.encode()), [])

    def test_unwritable_output_is_noticed_before_sampling(self):
        with harness.Target([harness.MINIJIT, "--seconds", "120"]) as target:
            for option in ("--output", "--stats"):
                with self.subTest(option=option):
                    # Longer than run_agent waits: the error must not come after the recording.
                    done = self.run_agent("--pid", str(target.pid), "--duration", "10m", option, "/no/such/folder/out")
                    self.check_error(done, mentions="/no/such/folder")

    def test_output_to_a_directory(self):
        with harness.Target([harness.MINIJIT, "--seconds", "20"]) as target:
            self.check_error(self.run_agent("--pid", str(target.pid), "--duration", "1s", "--output", "/tmp"), mentions="/tmp")

    def test_bad_option_values(self):
        for arguments in (("--frequency", "0"), ("--frequency", "-5"), ("--frequency", "abc"), ("--frequency", "100000000"),
                          ("--duration", "0s"), ("--duration", "-1s"), ("--duration", "ten"), ("--duration", "5x"), ("--duration", ""),
                          ("--pid", "0"), ("--pid", "-1"), ("--pid", "abc"), ("--pid", "1,,2"), ("--pid", "99999999999999999999"),
                          ("--format", "xml"), ("--names", "nice"), ("--ring-bytes", "1"), ("--ring-bytes", "many"), ("--no-such-option",),
                          ("--pid",), ("--pid", "1", "--", "true")):
            with self.subTest(arguments=arguments):
                self.check_error(self.run_agent(*arguments), status=2)

    def test_help_is_no_error(self):
        done = self.run_agent("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--pid", "--duration", "--frequency", "--output", "--names", "--stats"):
            self.assertIn(option, done.stdout)

    def test_inspection_of_bad_files(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            empty = os.path.join(folder, "empty")
            open(empty, "w").close()
            noise = os.path.join(folder, "noise")
            with open(noise, "wb") as f:
                f.write(os.urandom(4096))
            for command in ("jitdump", "r2rmap"):
                for path in (empty, noise, folder, os.path.join(folder, "absent")):
                    with self.subTest(command=command, path=os.path.basename(path)):
                        done = self.run_agent(command, path)
                        self.assertEqual(done.returncode, 1, done)
                        self.assertIn("error: ", done.stderr)


class EndTest(harness.LiveTest):
    """Signals and the target's end: the run stops soon, with its result and status 0."""

    NEEDS = ("minijit",)

    def check_stop(self, number):
        with harness.Target([harness.MINIJIT, "--seconds", "300"]) as target:
            agent = harness.Agent(("--pid", str(target.pid), "--frequency", "499"))
            agent.wait_until_sampling()
            target.use_cpu(1.5)
            agent.interrupt(number)
            result = agent.finish(120)
        self.check_result(result, minimum_samples=300)

    def test_control_c(self):
        self.check_stop(signal.SIGINT)

    def test_terminate(self):
        self.check_stop(signal.SIGTERM)

    def test_folded_text_goes_to_standard_output(self):
        with harness.Target([harness.MINIJIT, "--seconds", "30"]) as target:
            result = harness.record("--pid", str(target.pid), "--duration", "1s", output=False)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(folded.check(result.out), [])
        self.assertGreater(result.profile.total, 0, result)
        self.assertGreater(result.profile.with_frame(lambda f: f == "middle"), 0.8 * result.profile.total)

    def test_closed_standard_output(self):
        with harness.Target([harness.MINIJIT, "--seconds", "30"]) as target:
            agent = subprocess.Popen([harness.AGENT, "--pid", str(target.pid), "--duration", "1s"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            agent.stdout.close()
            err = agent.stderr.read()
            agent.stderr.close()
            agent.wait(90)
        self.assertEqual(agent.returncode, 1, err)
        self.assertIn("error: ", err)


if __name__ == "__main__":
    harness.main()
