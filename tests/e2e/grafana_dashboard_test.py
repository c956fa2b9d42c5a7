#!/usr/bin/env python3
"""The Grafana dashboard: Grafana's own types fit it, and a real Prometheus that scrapes the service answers each of its queries."""
import contextlib
import itertools
import json
import math
import os
import shutil
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import harness
import runtimes
import typed
from service import Service

DASHBOARD = os.path.join(runtimes.SOURCE, "deploy", "grafana", "clrsampler.json")
# type of a panel -> how the module of its types is called
MODULES = {"timeseries": "TimeSeries", "stat": "Stat", "heatmap": "Heatmap"}
WIDTH = 24
# The values that Grafana puts in. All is chosen; 20 s have several scrapes.
VARIABLES = (("$__rate_interval", "20s"), ("$instance", ".*"), ("$process", ".*"))
PROMETHEUS = """
global: {{scrape_interval: 1s}}
scrape_configs:
- job_name: clrsampler
  honor_labels: true
  static_configs: [{{targets: ['{}:{}']}}]
"""


def dashboard():
    with open(DASHBOARD, encoding="utf-8") as f:
        return json.load(f)


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions():
    """(title, PromQL with the variables put in) of each query."""
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in VARIABLES:
                text = text.replace(name, value)
            yield panel["title"], text


class FileTest(unittest.TestCase):
    """No root, no service."""

    def test_grafana_s_types_fit(self):
        for need in ("node", "npm"):
            if shutil.which(need) is None:
                self.assertFalse(harness.REQUIRE_LIVE, f"no `{need}` on PATH")
                self.skipTest(f"no `{need}` on PATH")
        values = {"dashboard": ("@grafana/schema", "Dashboard", dashboard())}
        for panel in panels():
            name = MODULES[panel["type"]]
            module = f"@grafana/schema/dist/esm/raw/composable/{panel['type']}/panelcfg/x/{name}PanelCfg_types.gen"
            values[f"options of {panel['title']}"] = (module, "Options", panel["options"])
            if "custom" in panel["fieldConfig"]["defaults"]:
                values[f"fields of {panel['title']}"] = (module, "FieldConfig", panel["fieldConfig"]["defaults"]["custom"])
        self.assertEqual(typed.complaints(values), "")
        wrong = dashboard()
        wrong["panels"][1]["fieldConfig"]["defaults"]["color"]["mode"] = "threshold"
        self.assertIn("threshold", typed.complaints({"wrong": ("@grafana/schema", "Dashboard", wrong)}))

    def test_panels_have_places_and_ids_of_their_own(self):
        taken = set()
        for panel in dashboard()["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], WIDTH, panel["title"])
            cells = set(itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])))
            self.assertEqual(cells & taken, set(), panel["title"])
            taken |= cells
        for key in ("id", "title"):
            found = [panel[key] for panel in dashboard()["panels"]]
            self.assertEqual(len(set(found)), len(found), key)

    def test_no_variable_is_left(self):
        for title, text in expressions():
            self.assertNotIn("$", text, title)
        for panel in panels():
            self.assertEqual({target["datasource"]["uid"] for target in panel["targets"]} | {panel["datasource"]["uid"]}, {"${datasource}"}, panel["title"])


class QueriesTest(harness.LiveTest):
    NEEDS = ("dotnet", "prometheus")

    def ask(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as answer:
            with answer:
                self.fail(f"{url}: {answer.read().decode()}")

    def unanswered(self):
        """The queries that give no number now."""
        found = []
        for title, text in expressions():
            result = self.ask("query", query=text)["result"]
            if not any(math.isfinite(float(series["value"][1])) for series in result):
                found.append((title, text))
        return found

    def test_prometheus_answers_each(self):
        with contextlib.ExitStack() as stack:
            service = stack.enter_context(Service())
            for mode in ("gc", "expr"):
                stack.enter_context(harness.workload(runtimes.INSTALLED, mode, "--seconds", 240))
            with open(os.path.join(service.folder, "prometheus.yml"), "w", encoding="utf-8") as f:
                f.write(PROMETHEUS.format(*service.address))
            process, self.port = harness.start_prometheus(service.folder)
            stack.callback(process.wait)
            stack.callback(process.kill)
            end = time.monotonic() + 90
            while missing := self.unanswered():
                self.assertLess(time.monotonic(), end, missing)
                time.sleep(1)
            for variable in dashboard()["templating"]["list"]:
                if variable["type"] == "query":
                    metric, label = variable["query"]["query"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
                    self.assertEqual(label, variable["name"])
                    self.assertNotEqual(self.ask(f"label/{label}/values", **{"match[]": metric.replace("$instance", ".*")}), [], variable)
            # A query of what does not exist has no answer: the loop above could tell.
            self.assertEqual(self.ask("query", query="clrsampler_no_such_metric")["result"], [])


if __name__ == "__main__":
    harness.main()
