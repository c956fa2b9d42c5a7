"""The things that a repository has: its files and folders, and the tests, labels, options and presets that its files declare."""
import fnmatch
import json
import pathlib
import posixpath
import re


PLACEHOLDER = re.compile(r"(?<![A-Za-z])(?:NAME|FAMILY|DATE)(?![A-Za-z])")


class Inventory:
    def __init__(self, files):
        """files: {path: text, or None where nothing is to be read}."""
        self.files = files
        self.places = set(files) | {str(folder) for path in files for folder in pathlib.PurePosixPath(path).parents}
        self.endings = {ending for place in self.places for ending in _endings(place)}
        self.stems = {posixpath.basename(path).split(".")[0] for path in files}
        # Folders that a path may begin with: those of the root, and those of userspace, as #include names them.
        self.roots = {path.split("/")[0] for path in files if "/" in path}
        self.roots |= {path.split("/")[1] for path in files if path.startswith("userspace/") and path.count("/") > 1}

        cmake = [re.sub(r"#.*", "", text) for path, text in files.items() if text and re.search(r"CMakeLists\.txt$|\.cmake$", path)]
        self.cases = {case for path, text in files.items() if text for case in test_cases(path, text)}
        self.tests = ctest_names(cmake) | self.cases
        self.labels = {label for text in cmake for words in re.findall(r'LABELS\s+"?([\w;]+)', text) for label in words.split(";")}
        self.cmake_words = {word for text in cmake for word in re.findall(r"\w+", text)}

        presets = json.loads(files.get("CMakePresets.json") or "{}")
        self.presets = {of: {preset["name"] for preset in presets.get(f"{of}Presets", []) if not preset.get("hidden")} for of in ("configure", "build", "test")}
        code = {path: text for path, text in files.items() if text and not path.endswith(".md")}
        makers = [re.sub(r"\s#.*", "", text) for path, text in code.items() if re.match(r"cmake/|tests/|tools/|\.ci/", path)]
        self.built = {folder for text in makers for folder in re.findall(r"\bbuild/([\w-]+)", text)} | self.presets["configure"]

        declared = declared_options(text for path, text in code.items() if path.startswith("userspace/cli/"))
        self.commands = completed_options(files.get("tools/packaging/generated/clrsampler.bash") or "")
        self.options = declared | {"--help"}
        self.hidden_options = declared - set().union(*self.commands.values())
        self.options_of_tools = declared_options(text for path, text in code.items() if re.match(r"tests/|tools/(?!references/)", path))

    def has_place(self, word, folder):
        """A file or folder, named from the root, from `folder`, or by the end of its path (as compilers do from where they run). It may be named
        with or without its extension."""
        if posixpath.normpath(posixpath.join(folder, word)) in self.places:
            return True
        word = PLACEHOLDER.sub("*", re.sub(r"^(\.\./)+", "", word).rstrip("/"))
        return bool(fnmatch.filter(self.endings, word)) if "*" in word else word in self.endings


def _endings(place):
    parts = place.split("/")
    for first in range(len(parts)):
        ending = "/".join(parts[first:])
        yield ending
        while "." in posixpath.basename(ending)[1:]:
            ending = ending.rpartition(".")[0]
            yield ending


def test_cases(path, text):
    """Suite.Case of GoogleTest, and of Python's tests each class with each case of its file."""
    if path.endswith(".py"):
        cases = re.findall(r"^    def (test_\w+)\(", text, re.M)
        return {f"{suite}.{case}" for suite in re.findall(r"^class (\w+Test)\(", text, re.M) for case in cases}
    return {f"{suite}.{case}" for suite, case in re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", text, re.M)}


DECLARES = r"(?:add_option|add_flag|set_config|set_version_flag|several|add_argument|contains|number_of)\(\s*|==\s*\[?|\bcase\s+"
# A call or comparison that has the option's names, strcmp and `in`, and a case of a shell script.
OPTION_DECLARED = re.compile(rf'(?:{DECLARES})"([^"]*)"|"(--[\w-]+)"(?:\) == 0| (?:not )?in sys\.argv)|^\s*((?:--?[\w-]+ *\|? *)+)\)', re.M)


def declared_options(texts):
    return {name for text in texts for found in OPTION_DECLARED.finditer(text) for name in re.findall(r"--[\w-]+", " ".join(filter(None, found.groups())))}


def completed_options(completion):
    """{command: options} from the completion for bash, which a test compares with --help."""
    found = re.findall(r"^    ('[^']*'|\w+)\)\n *words='([^']*)'", completion, re.M)
    return {command.strip("'"): set(re.findall(r"--[\w-]+", words)) for command, words in found}


CMAKE_COMMAND = re.compile(r"\b(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)")


def ctest_names(texts):
    """The values that add_test is given, with all that loops, and calls of the function around it, give to its variables."""
    commands, function = [], None
    for text in texts:
        for command, arguments in CMAKE_COMMAND.findall(text):
            words = arguments.split()
            if command == "function":
                function = words
            elif command == "endfunction":
                function = None
            elif words:
                commands.append((function, command, words))
    values = {}
    for _, command, words in commands:
        if command == "foreach":
            values.setdefault(words[0], set()).update(words[1:])
        else:
            values.setdefault(command, set()).add(words[0])
    names = set()
    for function, command, words in commands:
        if command not in ("add_test", "gtest_discover_tests"):
            continue
        templates = [words[1] if words[0] == "NAME" else words[0]]
        while templates:
            name = templates.pop()
            variable = re.search(r"\$\{(\w+)\}", name)
            if variable is None:
                names.add(name)
                continue
            of_function = function and function[1] == variable[1]
            templates += [name.replace(variable[0], value) for value in values.get(function[0] if of_function else variable[1], ()) if "$" not in value]
    return names
