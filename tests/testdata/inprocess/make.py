#!/usr/bin/env python3
"""Writes which slot of a table of functions has which name: callback_slots.txt, info_slots.txt, metadata_slots.txt.

usage: make.py CORPROF.IDL COR.H FOLDER
"""
import pathlib
import re
import sys

INTERFACE = re.compile(r"\[\s*object,[^\]]*\]\s*interface\s+(ICorProfiler(?:Callback|Info)\d*)\s*:\s*\w+\s*\{(.*?)\n\}", re.S)
NEWEST_INFO = 12  # of those that the library asks


def without_comments(path):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", pathlib.Path(path).read_text(), flags=re.S)


def number(interface):
    return int(re.search(r"\d*$", interface)[0] or 1)


def listing(functions):
    return "".join(f"{slot} {name} {interface}\n" for slot, (interface, name) in enumerate(functions, 3))


def main():
    idl, header, folder = without_comments(sys.argv[1]), without_comments(sys.argv[2]), pathlib.Path(sys.argv[3])
    functions = [(interface, name) for interface, body in INTERFACE.findall(idl) for name in re.findall(r"HRESULT\s+(\w+)\s*\(", body)]
    (folder / "callback_slots.txt").write_text(listing([f for f in functions if "Callback" in f[0]]))
    (folder / "info_slots.txt").write_text(listing([f for f in functions if "Info" in f[0] and number(f[0]) <= NEWEST_INFO]))
    body = re.search(r"DECLARE_INTERFACE_\(IMetaDataImport, IUnknown\)(.*?)\n};", header, re.S)[1]
    names = re.findall(r"STDMETHOD_?\s*\(\s*(?:\w+\s*,\s*)?(\w+)\s*\)", body)
    (folder / "metadata_slots.txt").write_text(listing([("IMetaDataImport", name) for name in names]))


if __name__ == "__main__":
    main()
