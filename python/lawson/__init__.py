"""Lawson from Python: the laboratory's commands on functions of JAX.

    import lawson
    lawson.explain(f, x, y)              # why each edge was fused or not
    lawson.xray(f, x, y)                 # a page, inline in a notebook
    lawson.diff(f, x, y, a="", b="--fusion=none")
    lawson.bench(f, x, y, a="", b="--fusion=none")
    lawson.ablate(f, x, y, disable="all")

f is lowered by jax.jit(f).lower(*args), never run by JAX; a function that is
jitted already is taken as it is. Keyword arguments are options of the command
(dashes are underscores; True is a flag; a list repeats the option). Each
result holds the command's JSON as .data and its text as str(); a command whose
answer is no (exit status 3) is a result too, anything else raises LawsonError.

The binary: LAWSON, else build or install that this file stands in, else PATH.
"""
import html
import json
import os
import shutil
import subprocess
import tempfile

__all__ = ["LawsonError", "Result", "Page", "ablate", "bench", "diff",
           "explain", "hlo", "xray"]


class LawsonError(RuntimeError):
    """What the command said on standard error."""


class Result:
    """A command's answer."""

    def __init__(self, data, text, code):
        self.data, self.text, self.code = data, text, code

    def __str__(self):
        return self.text

    __repr__ = __str__

    def __bool__(self):
        """Is the answer yes?"""
        return self.code == 0

    def _repr_html_(self):
        return f"<pre>{html.escape(self.text)}</pre>"


class Page(Result):
    """A self-contained page, in a frame of its own."""

    def __init__(self, page, text):
        super().__init__(None, text, 0)
        self.page = page

    def save(self, path):
        with open(path, "w") as file:
            file.write(self.page)

    def _repr_html_(self):
        source = html.escape(self.page, quote=True)
        return (f'<iframe srcdoc="{source}" title="Lawson" width="100%" '
                'height="720" style="border:0"></iframe>')


def binary():
    """The path of `lawson`."""
    if given := os.environ.get("LAWSON"):
        return given
    # PREFIX/share/lawson/python/lawson: PREFIX/lawson (a build), PREFIX/bin
    top = os.path.abspath(__file__)
    for _ in range(5):
        top = os.path.dirname(top)
    for place in (top + "/lawson", top + "/bin/lawson"):
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    if found := shutil.which("lawson"):
        return found
    raise LawsonError("no lawson in sight: set LAWSON to its path")


def hlo(fn, *args, **kwargs):
    """The function's HLO, unoptimised, as a serialised HloModuleProto."""
    import jax
    jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
    lowered = jitted.lower(*args, **kwargs)
    return lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()


def options_of(options):
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(flag)
            elif one is not None and one is not False:
                words.append(f"{flag}={one}")
    return words


def call(command, words):
    """Runs the command; (exit status, standard output)."""
    done = subprocess.run([binary(), command, *words], text=True,
                          capture_output=True)
    if done.returncode not in (0, 3):
        raise LawsonError(done.stderr.strip()
                          or f"exit status {done.returncode}")
    return done.returncode, done.stdout


class lowered_to_file:
    """with ... as path: the function's module in a file."""

    def __init__(self, fn, args):
        self.data = hlo(fn, *args)

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lawson-")
        path = os.path.join(self.folder.name, "module.pb")
        with open(path, "wb") as file:
            file.write(self.data)
        return path

    def __exit__(self, *_):
        self.folder.cleanup()


def answer(command, fn, args, options):
    """Both views come from one module, so the command runs twice."""
    words = options_of(options)
    with lowered_to_file(fn, args) as path:
        code, text = call(command, [path, *words])
        _, data = call(command, [path, *words, "--json"])
    return Result(json.loads(data), text, code)


def explain(fn, *args, **options):
    """Why each edge was fused or not, what was left in memory, the wall."""
    return answer("explain", fn, args, options)


def ablate(fn, *args, **options):
    """Leaves passes (disable="a,b" or "all") or edges (edges=True) out."""
    return answer("ablate", fn, args, options)


def diff(fn, *args, a="", b="", **options):
    """What two compilers, or two sets of options, make of the function."""
    return answer("diff", fn, args, {"a": a, "b": b, **options})


def bench(fn, *args, a="", b="", **options):
    """Which of two sets of options is faster, and is that sure? One run."""
    words = options_of({"a": a, "b": b, **options})
    with lowered_to_file(fn, args) as path:
        code, text = call("bench", [path, *words, "--json"])
    data = json.loads(text)
    return Result(data, json.dumps(data, indent=1), code)


def xray(fn, *args, **options):
    """The fusion x-ray as a page."""
    with lowered_to_file(fn, args) as path:
        page = os.path.join(os.path.dirname(path), "page.html")
        _, text = call("xray", [path, "-o", page, *options_of(options)])
        with open(page) as file:
            return Page(file.read(), text)
