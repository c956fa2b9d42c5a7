"""Control groups that look like those of containers, for processes of tests."""
import os
import time


def root():
    unified = "/sys/fs/cgroup/unified"
    return unified if os.path.exists(unified) else "/sys/fs/cgroup"


class ControlGroup:
    """components: of its path, the outermost first, below one of the test. OSError: none can be made here."""

    def __init__(self, *components):
        self.folders = [os.path.join(root(), f"clrsampler-test-{os.getpid()}")]
        for component in components:
            self.folders.append(os.path.join(self.folders[-1], component))
        os.makedirs(self.folders[-1], exist_ok=True)

    def add(self, pid):
        with open(os.path.join(self.folders[-1], "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(pid))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for folder in reversed(self.folders):
            for _ in range(50):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.1)
