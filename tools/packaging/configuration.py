"""The example configuration file of `clrsampler serve`: every key, commented out, with its default."""
import textwrap

# Examples for the lines of options without a default; the parser of the test reads every one of them.
EXAMPLES = {"cgroup": "/system.slice/shop.service", "container": "shop", "comm": "dotnet", "uid": "1000", "ring-bytes": "16MiB", "perf-map-cap": "256MiB", "cri-socket": "/run/containerd/containerd.sock",
            "allow-host": "profiles.example.com", "textfile": "/var/lib/prometheus/node-exporter", "push": "https://pyroscope.example.com",
            "push-header": "Authorization: Bearer TOKEN", "otlp": "http://collector.example.com:4318",
            "otlp-header": "Authorization: Bearer TOKEN", "otlp-ca": "/etc/clrsampler/collector-ca.pem", "pdb-path": "/srv/symbols", "token-file": "/etc/clrsampler/token", "tls-cert": "/etc/clrsampler/cert.pem",
            "tls-key": "/etc/clrsampler/key.pem", "trigger": "pause>100ms"}
# The package's values where they are not the default: the service has a Unix socket, for users that the file system lets in.
PACKAGED = {"listen": '["unix:/run/clrsampler/http.sock", "127.0.0.1:9404"]'}
NOT_KEYS = {"help", "config"}
HEAD = """\
# What `clrsampler serve` does on this host. The keys are its options (clrsampler-serve(1)), commented out where the
# value is the default; an option on the command line wins. After a change: systemctl reload clrsampler
"""


def render(serve):
    lines = [HEAD]
    for option in serve.options:
        key = option.long.removeprefix("--")
        if key in NOT_KEYS:
            continue
        for line in option.help:
            line = line[0].upper() + line[1:]
            lines += textwrap.wrap(line, 100, initial_indent="# ", subsequent_indent="# ")
        if option.choices:
            lines.append(f"# One of: {', '.join(option.choices)}.")
        if option.several:
            lines.append(f'# Several: {key} = ["A", "B"]')
        if option.metavar is None:
            value = "false"
        elif option.default is not None:
            value = option.default
        elif key in EXAMPLES:
            lines.append("# No default; for example:")
            value = EXAMPLES[key]
        else:
            raise ValueError(f"--{key} has no default: add an example of it to EXAMPLES in configuration.py")
        if key in PACKAGED:
            lines.append(f"{key} = {PACKAGED[key]}\n")
            continue
        number = option.metavar is None or value.replace(".", "", 1).isdigit()
        lines.append(f"#{key} = {value}\n" if number else f'#{key} = "{value}"\n')
    return "\n".join(lines).rstrip("\n") + "\n"
