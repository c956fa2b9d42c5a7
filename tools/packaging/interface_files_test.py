#!/usr/bin/env python3
"""The files in generated/ are what the program says now, and the programs that read them accept them."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import command_line
import completions
import interface_files

PROGRAM = os.environ["CLRSAMPLER"]
GENERATED = interface_files.GENERATED


class InterfaceFilesTest(unittest.TestCase):
    def test_they_are_current(self):
        done = subprocess.run([str(interface_files.HERE / "interface_files.py"), "--check", PROGRAM], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_stale_one_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, "packaging")
            shutil.copytree(interface_files.HERE, copy)
            with open(copy / "generated" / "clrsampler-top.1", "a", encoding="utf-8") as f:
                f.write(".PP\nOld.\n")
            done = subprocess.run([str(copy / "interface_files.py"), "--check", PROGRAM], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn("clrsampler-top.1", done.stdout)

    def test_every_option_of_the_help_is_in_its_page(self):
        for command in command_line.read(PROGRAM):
            said = subprocess.run([PROGRAM, *command.name.split(), "--help"], check=True, capture_output=True, text=True).stdout.split("\nExamples:")[0]
            expected = set(re.findall(r"^  (?:-\w,)?--([\w-]+)", said, re.M))
            page = (GENERATED / f"{command.page}.1").read_text().replace("\\-", "-")
            self.assertEqual(expected, set(re.findall(r"\\fB--([\w-]+)\\fP(?: \\fI|$)", page.split(".SH OPTIONS")[1].split(".SH ")[0], re.M)), command.name)

    def test_values_stand_in_pages_as_the_program_takes_them(self):
        for command in command_line.read(PROGRAM):
            page = (GENERATED / f"{command.page}.1").read_text().replace("\\-", "-")
            for option in command.options:
                for choice in option.choices or []:
                    if not choice[0].isupper():
                        self.assertNotRegex(page, rf"(?m)^{re.escape(choice[0].upper() + choice[1:])}: ", f"{command.name} {option.long}")

    def test_every_key_of_the_configuration_is_accepted_once_and_for_all_together(self):
        text = (GENERATED / "serve.conf").read_text()
        keys = re.findall(r"^#?([\w-]+) = ", text, re.M)
        serve = next(c for c in command_line.read(PROGRAM) if c.name == "serve")
        self.assertEqual(sorted(keys), sorted(o.long[2:] for o in serve.options if o.long not in ("--help", "--config")))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "serve.conf")
            # All keys with the values shown, and one that is wrong and so ends it before it samples: that one is what it complains of.
            path.write_text(re.sub(r"^#(?=[\w-]+ = )", "", text, flags=re.M).replace('window = "10s"', 'window = "3h"'))
            done = subprocess.run([PROGRAM, "serve", "--config", path], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("error: --window 3h is not from 1s to 60s", done.stderr)

    def test_man_has_no_complaints(self):
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        for page in GENERATED.glob("*.1"):
            done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", page], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def complete(self, *words):
        """The words that bash offers for the last one."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; ' \
                 '_clrsampler clrsampler "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-uc", script, "bash", GENERATED / "clrsampler.bash", "clrsampler", *words], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_bash_completes_commands_options_values_and_files(self):
        self.assertEqual(self.complete("se"), ["serve"])
        self.assertEqual(self.complete("serve", "--push-"), ["--push-by", "--push-header"])
        self.assertEqual(self.complete("serve", "--push-by", ""), ["service", "process"])
        self.assertIn(str(os.getpid()), self.complete("pauses", "--pid", ""))
        self.assertIn("/etc/passwd", self.complete("serve", "--config", "/etc/passw"))
        self.assertEqual(self.complete("--view", "suspend"), ["suspend-delay"])
        self.assertEqual(self.complete("mip", "c"), ["create", "covered"])
        self.assertEqual(self.complete("mip", "merge", "--s"), ["--strict"])
        self.assertEqual(self.complete("merge", "--s"), [])
        self.assertEqual(self.complete("mip", "create", "--mip-layout", ""), ["documented", "llvm"])

    def test_descriptions_end_with_a_sentence_or_a_clause(self):
        def described(*lines):
            return completions.description(command_line.Option(["--some"], list(lines)))
        long = "x" * completions.MOST
        self.assertEqual(described("no frames like [gc] and", "[jit]; of .NET 8.0"), "no frames like [gc] and [jit]; of .NET 8.0")
        self.assertEqual(described("one. two;", "three of .NET " + long), "one. two")
        self.assertEqual(described(long + " and", "so on; more"), long + " and so on")
        self.assertEqual(described(long, long), f"{long} {long}")

    def test_no_description_stops_within_a_sentence(self):
        offered = (GENERATED / "clrsampler.fish").read_text()
        for command in command_line.read(PROGRAM):
            for option in command.options:
                self.assertRegex(" ".join(option.help) + " ", re.escape(completions.description(option)) + r"(?:[.;] | ?$)", option.long)
                self.assertIn(completions.description(option).replace("\\", "\\\\").replace("'", "\\'"), offered)

    def test_zsh_and_fish_read_theirs(self):
        for shell, file in (("zsh", "_clrsampler"), ("fish", "clrsampler.fish")):
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", GENERATED / file], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)


if __name__ == "__main__":
    unittest.main(verbosity=2)
