"""Google's pprof, which reads what we write."""
import os
import subprocess
import tempfile

import harness
import runtimes

GO = "golang-1.19-go"


def pprof_tool():
    """`go tool pprof` of Debian's package, unpacked below build/: of its 300 MB only this program is needed."""
    place = os.path.join(runtimes.BUILD, "packs", "pprof")
    if not os.path.exists(place):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            got = subprocess.run(["apt-get", "-q", "download", GO], capture_output=True, text=True, timeout=300, cwd=folder)
            if got.returncode:
                raise harness.Missing(f"apt-get download {GO} failed: {got.stderr.strip()[-400:]}")
            package = os.path.join(folder, os.listdir(folder)[0])
            tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
            subprocess.run(["tar", "x", "-C", folder, "--wildcards", "--strip-components=7", "*/pkg/tool/*/pprof"],
                           stdin=tar.stdout, check=True)
            tar.stdout.close()
            tar.wait()
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.replace(os.path.join(folder, "pprof"), place)
    return place
