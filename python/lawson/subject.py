"""XLA as a subject of the laboratory: run by `lawson`, never by hand.

    python subject.py < request.json

The request names a backend and the modules to compile for it:

    {"backend": "cpu" | "gpu" | "tpu",
     "device":  topology name (tpu) or target config text (gpu),
     "version": the jax that is asked for, if one is,
     "width":   how many at a time,
     "jobs":    [{"folder": DIR, "flags": [...], "disable": [PASS, ...],
                  "inputs": FILE.npz or null}, ...]}

Each job reads DIR/before.hlo, compiles it in a process of its own (flags are
read once a process, and XLA may end it) and fills DIR as src/lab/subject.h
says: after.hlo, fusion_in.hlo, passes.tsv, decisions.tsv, xla.json. With
inputs (the CPU only) the program is run too: outputs.npz. One JSON line a job
is written, in the order that they end: {"job": k, "error": null or text}.

What a pass did is taken from two records that XLA keeps of itself: the log of
its pass pipeline lists all that ran, in order, with times; the dumps tell which
of them said that they had changed the module.

Exit status 4: the packages are not there; the reason is on standard output.
"""
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time

LOG_SETTINGS = {
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_CPP_VMODULE": "hlo_pass_pipeline=1",
    "TPU_MIN_LOG_LEVEL": "0",
    "TPU_STDERR_LOG_LEVEL": "0",
    "TPU_VMODULE": "hlo_pass_pipeline=1",
}
# Without these libtpu asks the cloud what machine this is, and lets no second
# process in.
TPU_SETTINGS = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}
DISABLE = "--xla_disable_hlo_passes="


# ---- compiling ----


def prepare(request):
    """Before jax is imported: what XLA reads from the environment."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.pop("XLA_FLAGS", None)
    os.environ.update(LOG_SETTINGS)
    if request["backend"] == "tpu":
        for key, value in TPU_SETTINGS.items():
            os.environ.setdefault(key, value)
        kind = request["device"].split(":")[0]
        os.environ.setdefault("TPU_ACCELERATOR_TYPE", kind + "-1")


def reader_of_text():
    """XLA's parser of HLO text, wherever this jaxlib keeps it."""
    import importlib
    for name in ("jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_client",
                 "jaxlib.xla_extension"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for place in (module, getattr(module, "hlo", None),
                      getattr(module, "_xla", None)):
            if hasattr(place, "hlo_module_from_text"):
                return place.hlo_module_from_text
    raise ImportError("this jaxlib has no parser of HLO text")


def find_device(request):
    import jax
    from jax.experimental import topologies
    if request["backend"] == "gpu":
        described = topologies.get_topology_desc(
            platform="cuda", target_config=request["device"],
            topology="1x1x1")
    elif request["backend"] == "tpu":
        described = topologies.get_topology_desc(
            platform="tpu", topology_name=request["device"],
            chips_per_host_bounds=(1, 1, 1), num_slices=1)
    else:
        return jax.devices("cpu")[0]
    return described.devices[0]


def compile_text(text, request):
    """HLO text -> HloModuleProto -> StableHLO -> an executable."""
    import numpy
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib import _jax
    from jaxlib.mlir import ir
    proto = reader_of_text()(text).as_serialized_hlo_module_proto()
    program = _jax.mlir.hlo_to_stablehlo(proto)
    device = find_device(request)
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(
        numpy.array([[device.id]]))
    client = device.client
    on_cpu = request["backend"] == "cpu"
    build = client.compile_and_load if on_cpu else client.compile
    with mlir.make_ir_context():
        return build(ir.Module.parse(program), _jax.DeviceList((device,)),
                     options), device


def versions(backend, wanted=None):
    import importlib.metadata as metadata
    names = ["jax", "jaxlib"]
    names += {"gpu": ["jax-cuda13-pjrt"], "tpu": ["libtpu"]}.get(backend, [])
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            raise ImportError(f"{name} is not installed") from None
    if wanted and found["jax"] != wanted:
        raise ImportError(f"its jax is {found['jax']}, not {wanted}")
    return found


# ---- running, on the CPU ----


def parameter_types(text):
    """numpy's types of the entry's parameters."""
    from jax._src.lib import xla_client
    proto = reader_of_text()(text).as_serialized_hlo_module_proto()
    shapes = xla_client.XlaComputation(proto).program_shape()
    shapes = shapes.parameter_shapes()
    if any(shape.is_tuple() for shape in shapes):
        raise ValueError("a parameter is a tuple")
    return [shape.numpy_dtype() for shape in shapes]


def as_type(array, dtype):
    if array.dtype == dtype:
        return array
    return (array.view(dtype) if array.dtype.itemsize == dtype.itemsize
            else array.astype(dtype))


def know_lapack():
    """LAPACK's custom calls find their routines in SciPy once this is done."""
    try:
        from jaxlib import lapack
        lapack._lapack.initialize()
    except (ImportError, AttributeError):
        pass  # another jaxlib; a program that needs them says so


def run(executable, device, text, inputs, outputs):
    """Arrays p0, p1, ... in, o0, o1, ... out. Types that numpy lacks travel
    as unsigned integers of their width."""
    import jax
    import numpy
    know_lapack()
    types = parameter_types(text)
    with numpy.load(inputs) as file:
        arrays = [as_type(file[f"p{k}"], dtype)
                  for k, dtype in enumerate(types)]
    placed = [jax.device_put(array, device) for array in arrays]
    results = executable.execute_sharded(placed)
    plain = {}
    for k, shard in enumerate(results.disassemble_into_single_device_arrays()):
        array = numpy.asarray(shard[0])
        if array.dtype.kind not in "biufc":
            array = array.view(f"u{array.dtype.itemsize}")
        plain[f"o{k}"] = array
    numpy.savez(outputs, **plain)


# ---- the log ----

STARTS = re.compile(r"Running HLO pass pipeline on module [^:]*: (.*)$")
PASS = re.compile(r"\] +HLO pass (.*)$")
TIME = re.compile(r"HLO pass: (.*) time: ([\d.]+) (ns|us|ms|s|min) ")
MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4}


class Row:
    """A pass or a pipeline that ran."""

    def __init__(self, name, depth, parent, kind):
        self.name, self.depth, self.parent, self.kind = (name, depth, parent,
                                                         kind)
        self.ms = None
        self.changed = False
        self.outermost = False  # a pipeline that no pass line announced


def rows_of(log):
    """The log's rows in order of start, and the events (start or end, row) in
    the order that they happened.

    A pipeline inside a pipeline is announced as a pass first. One that the
    compiler itself starts has no line for its end: it ends where the next of
    its kind starts, or with the pass that it ran in."""
    rows, events, stack = [], [], []

    def close(count):
        while len(stack) > count:
            events.append(("end", stack.pop()))

    def start(name, kind):
        row = Row(name, len(stack), stack[-1] if stack else None, kind)
        rows.append(row)
        stack.append(row)
        return row

    for line in log.split("\n"):
        if found := STARTS.search(line):
            announced = (stack and stack[-1] is rows[-1]
                         and stack[-1].kind == "pass"
                         and stack[-1].name == found[1])
            if announced:
                row = stack[-1]
                row.kind = "pipeline"
            else:
                if stack and stack[-1].outermost:
                    close(len(stack) - 1)
                row = start(found[1], "pipeline")
                row.outermost = True
            events.append(("start", row))
        elif found := PASS.search(line):
            start(found[1], "pass")
        elif found := TIME.search(line):
            open_rows = [k for k, row in enumerate(stack)
                         if row.name == found[1] and not row.outermost]
            if open_rows:
                stack[open_rows[-1]].ms = (float(found[2])
                                           * MILLISECONDS[found[3]])
                close(open_rows[-1])
    close(0)
    sum_outermost(rows)
    return rows, events


def sum_outermost(rows):
    for row in rows:
        if row.outermost:
            row.ms = sum(inner.ms or 0 for inner in rows
                         if inner.parent is row)


# ---- the dumps ----

DUMP = re.compile(r"\.(\d{4})\.(.+)\.after_(.+?)(?:\.before_(.+))?\.txt$")


def in_file_name(name):
    return re.sub(r"[^\w.-]", "_", name)


def dumps_of(folder, prefix):
    """(path, pipeline, pass) of the main module's dumps, in order."""
    found = []
    for name in os.listdir(folder):
        if name.startswith(prefix) and (m := DUMP.search(name)):
            found.append((int(m[1]), os.path.join(folder, name), m[2], m[3]))
    return [entry[1:] for entry in sorted(found)]


def mark_changes(events, dumps):
    """Finds the event behind each dump; rows whose end was dumped have
    changed the module. Returns (row or None, path) a dump. Steps inside a pass
    are dumped too; they have no event and mark nothing."""
    placed, at = [], 0
    for path, pipeline, step in dumps:
        kind = "start" if step == "pipeline-start" else "end"
        name = pipeline if kind == "start" else step
        row = None
        for k in range(at, len(events)):
            what, candidate = events[k]
            if what != kind or in_file_name(candidate.name) != name:
                continue
            parent = candidate.parent
            if kind == "end" and (not parent or
                                  in_file_name(parent.name) != pipeline):
                continue
            row, at = candidate, k + 1
            break
        if row and kind == "end":
            row.changed = True
        placed.append((row if kind == "end" else None, path))
    return placed


def fusions_in(path):
    with open(path, errors="replace") as file:
        return sum(1 for line in file if " fusion(" in line)


def before_fusion(placed):
    """The dump right before the first fusion pass that changed something and
    left more fusions than it found; None without one."""
    for (row, path), (_, earlier) in zip(placed[1:], placed):
        if row and row.kind == "pass" and "fusion" in row.name.lower():
            if fusions_in(path) > fusions_in(earlier):
                return earlier
    return None


# ---- XLA:GPU's record of its decisions ----

FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+))')


def decisions_of(text):
    """decisions.tsv out of priority_fusion_dump.txt (a text proto)."""
    lines = []
    for step in text.split("fusion_steps {")[1:]:
        fields = {}
        for name, quoted, bare in FIELD.findall(step):
            fields.setdefault(name, []).append(quoted or bare)
        def one(name):
            return fields.get(name, [""])[0]
        if "update_priority {" in step:
            lines.append(("priority", one("producer_name"),
                          ",".join(fields.get("consumer_names", [])),
                          one("us_fused") or "0", one("us_unfused") or "0"))
        elif "producer_ineligible {" in step:
            lines.append(("refused", one("producer_name"), one("reason")))
        elif "fusion {" in step:
            lines.append(("fusion", one("producer_name"),
                          one("consumer_name"), one("fusion_name")))
    return "".join("\t".join(line) + "\n" for line in lines)


# ---- one job ----


def quoted_flag(flag):
    name, equals, value = flag.partition("=")
    return f"{name}='{value}'" if equals and re.search(r"\s", value) else flag


def flags_of(job, dump):
    disabled = list(job["disable"])
    flags = []
    for flag in job["flags"]:
        if flag.startswith(DISABLE):
            disabled += flag[len(DISABLE):].split(",")
        else:
            flags.append(quoted_flag(flag))
    if disabled:
        flags.append(quoted_flag(DISABLE + ",".join(disabled)))
    return " ".join([f"--xla_dump_to={dump}", "--xla_dump_hlo_pass_re=.*",
                     "--xla_dump_hlo_as_text",
                     "--xla_dump_large_constants"] + flags)


def main_prefix(dump):
    """The file names of the module that was handed over start so; modules that
    XLA makes on its way have higher numbers."""
    names = [name for name in os.listdir(dump)
             if name.endswith("before_optimizations.txt")]
    if not names:
        raise RuntimeError("XLA dumped no module")
    name = min(names, key=lambda n: int(re.search(r"module_(\d+)", n)[1]))
    return name[:-len("before_optimizations.txt")]


def entry_layout(path):
    with open(path, errors="replace") as file:
        found = re.search(r"entry_computation_layout=\{(.*?)\}(?:, \w+=|$)",
                          file.readline())
    return found[1] if found else ""


def lay_out(folder, dump, log):
    prefix = main_prefix(dump)
    rows, events = rows_of(log)
    placed = mark_changes(events, dumps_of(dump, prefix))
    after = [name for name in os.listdir(dump) if name.startswith(prefix)
             and name.endswith("after_optimizations.txt")]
    if not after:
        raise RuntimeError("XLA dumped no optimised module")
    after = os.path.join(dump, after[0])
    shutil.copy(after, folder + "/after.hlo")
    shutil.copy(before_fusion(placed) or after, folder + "/fusion_in.hlo")
    with open(folder + "/passes.tsv", "w") as file:
        file.write("order\tdepth\tkind\tname\tchanged\tms\n")
        for k, row in enumerate(rows):
            changed = "yes" if row.changed else "no"
            if row.outermost:
                inner = any(r.changed for r in rows if r.parent is row)
                changed = "yes" if inner else "no"
            ms = "" if row.ms is None else f"{row.ms:.3f}"
            file.write(f"{k}\t{row.depth}\t{row.kind}\t{row.name}\t"
                       f"{changed}\t{ms}\n")
    record = os.path.join(dump, prefix + "priority_fusion_dump.txt")
    if os.path.exists(record):
        with open(record) as file, \
                open(folder + "/decisions.tsv", "w") as out:
            out.write(decisions_of(file.read()))
    was = entry_layout(folder + "/before.hlo")
    now = entry_layout(os.path.join(dump, prefix + "before_optimizations.txt"))
    return ["entry layouts"] if was and was != now else []


def work(request, job, log):
    """In a process of its own: fills the folder."""
    folder = job["folder"]
    with tempfile.TemporaryDirectory(prefix="lawson-xla-") as dump:
        os.environ["XLA_FLAGS"] = flags_of(job, dump)
        with open(folder + "/before.hlo") as file:
            text = file.read()
        start = time.monotonic()
        executable, device = compile_text(text, request)
        elapsed = (time.monotonic() - start) * 1e3
        sys.stderr.flush()
        with open(log, errors="replace") as file:
            lost = lay_out(folder, dump, file.read())
        answer = {"versions": versions(request["backend"]),
                  "compile_ms": elapsed, "not_kept": lost}
        write_answer(folder, answer)  # a run may end the process
        if job.get("inputs"):
            try:
                run(executable, device, text, job["inputs"],
                    folder + "/outputs.npz")
            except Exception as error:
                answer["run_error"] = f"{type(error).__name__}: {error}"
                write_answer(folder, answer)


def write_answer(folder, answer):
    with open(folder + "/xla.json", "w") as file:
        json.dump(answer, file)


def child(request, job, log):
    """Never returns: the answer is in xla.json, the exit status and, for an
    error, DIR/error."""
    code = 1
    end_with_parent()
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 2)
        os.dup2(2, 1)
        work(request, job, log)
        code = 0
    except Exception as error:  # all of XLA's own refusals too
        with open(job["folder"] + "/error", "w") as file:
            file.write(f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


def verdict(job, log, status):
    """None, or why there is no answer."""
    folder = job["folder"]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return None
    if os.path.exists(folder + "/error"):
        with open(folder + "/error") as file:
            return file.read()
    how = (signal.Signals(os.WTERMSIG(status)).name
           if os.WIFSIGNALED(status) else f"status {status >> 8}")
    with open(log, errors="replace") as file:
        lines = [s for s in file.read().split("\n") if re.match(r"[FE]\d", s)]
    said = ": " + lines[-1].split("] ", 1)[-1] if lines else ""
    if os.path.exists(folder + "/xla.json"):
        with open(folder + "/xla.json") as file:
            answer = json.load(file)
        answer["run_error"] = f"the program ended its process ({how}){said}"
        write_answer(folder, answer)
        return None
    return f"XLA ended the process ({how}){said}"


def run_jobs(request, scratch):
    waiting = list(enumerate(request["jobs"]))
    running = {}
    while waiting or running:
        while waiting and len(running) < max(1, request.get("width", 1)):
            k, job = waiting.pop(0)
            log = f"{scratch}/{k}.log"
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                child(request, job, log)
            running[pid] = (k, job, log)
        pid, status = os.wait()
        if pid not in running:
            continue
        k, job, log = running.pop(pid)
        print(json.dumps({"job": k, "error": verdict(job, log, status)}),
              flush=True)
        if os.path.exists(log):
            os.unlink(log)


def end_with_parent():
    """No compile outlives the command that asked for it."""
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main():
    end_with_parent()
    request = json.load(sys.stdin)
    prepare(request)
    try:
        versions(request["backend"], request.get("version"))
        import jax  # noqa: F401 -- once, for all the jobs
        from jax._src.interpreters import mlir  # noqa: F401
        from jax.experimental import topologies  # noqa: F401
        reader_of_text()
    except ImportError as error:
        print(error)
        sys.exit(4)
    with tempfile.TemporaryDirectory(prefix="lawson-log-") as scratch:
        run_jobs(request, scratch)


if __name__ == "__main__":
    main()
