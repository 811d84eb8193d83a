"""A program compiled by XLA, in a process of its own, which answers when asked:
run by `lawson bench`, never by hand. src/lab/worker.h has the questions.

    python worker.py MODULE.hlo --inputs=FILE.npz [--target=NAME]
           [--disable=PASS,...] [--threads=N] [--xla_...]

Exit status 4: the packages, or the device, are not there.
"""
import json
import os
import statistics
import sys
import time

WARM_SECONDS, WARM_RUNS, MOST_RUNS = 0.020, 1000, 100000
GPUS = ("gpu", "cuda", "h100", "h200", "a100", "v100", "b200", "l4", "rtx")


def arguments(words):
    values, flags, module = {}, [], None
    for word in words:
        if word.startswith("--xla_"):
            flags.append(word)
        elif word.startswith("--"):
            name, _, value = word[2:].partition("=")
            values[name] = value
        else:
            module = word
    if values.get("disable"):
        flags.append("--xla_disable_hlo_passes=" + values["disable"])
    if values.get("threads") == "1":
        flags.append("--xla_cpu_multi_thread_eigen=false")
        os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
    return module, values, flags


def platform_of(target):
    target = (target or "cpu").lower()
    if target == "cpu":
        return "cpu"
    return "cuda" if target.startswith(GPUS) else "tpu"


def missing(text):
    print(text, file=sys.stderr)
    sys.exit(4)


class Program:
    def __init__(self, module, values, flags):
        platform = platform_of(values.get("target"))
        os.environ["JAX_PLATFORMS"] = platform
        os.environ["XLA_FLAGS"] = " ".join(flags)
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        start = time.perf_counter()
        try:
            import jax
            import subject
            self.device = jax.devices(platform)[0]
            subject.reader_of_text()
        except (ImportError, RuntimeError) as error:
            missing(f"no {platform} device for XLA here: {error}")
        self.jax = jax
        with open(module, encoding="utf-8") as file:
            text = file.read()
        program = self.stablehlo(subject, text)
        self.load_ms = (time.perf_counter() - start) * 1e3
        start = time.perf_counter()
        self.compile(program)
        self.compile_ms = (time.perf_counter() - start) * 1e3
        self.place(subject, text, values["inputs"])

    @staticmethod
    def stablehlo(subject, text):
        from jaxlib import _jax
        proto = subject.reader_of_text()(text)
        return _jax.mlir.hlo_to_stablehlo(
            proto.as_serialized_hlo_module_proto())

    def compile(self, program):
        import numpy
        from jax._src.interpreters import mlir
        from jax._src.lib import xla_client
        from jaxlib import _jax
        from jaxlib.mlir import ir
        options = xla_client.CompileOptions()
        options.num_replicas = options.num_partitions = 1
        options.device_assignment = xla_client.DeviceAssignment.create(
            numpy.array([[self.device.id]]))
        with mlir.make_ir_context():
            self.executable = self.device.client.compile_and_load(
                ir.Module.parse(program), _jax.DeviceList((self.device,)),
                options)
        head = self.text().split("\n", 1)[0]
        self.donates = "input_output_alias" in head or "buffer_donor" in head

    def text(self):
        return self.executable.hlo_modules()[0].to_string()

    def place(self, subject, text, path):
        import numpy
        types = subject.parameter_types(text)
        with numpy.load(path) as file:
            self.arrays = [subject.as_type(file[f"p{k}"], dtype)
                           for k, dtype in enumerate(types)]
        self.placed = None

    def run(self):
        """Milliseconds of one call. A donated input is placed anew first."""
        if self.placed is None or self.donates:
            put = [self.jax.device_put(a, self.device) for a in self.arrays]
            self.placed = self.jax.block_until_ready(put)
        start = time.perf_counter()
        results = self.executable.execute(self.placed)
        for result in results:
            result.block_until_ready()
        self.results = results
        return (time.perf_counter() - start) * 1e3

    def save(self, path):
        import numpy
        plain = {}
        for k, result in enumerate(self.results):
            array = numpy.asarray(result)
            if array.dtype.kind not in "biufc":
                array = array.view(f"u{array.dtype.itemsize}")
            plain[f"o{k}"] = array
        with open(path, "wb") as file:
            numpy.savez(file, **plain)


def warm_up(program):
    times, start = [], time.perf_counter()
    while True:
        times.append(program.run())
        if (time.perf_counter() - start >= WARM_SECONDS
                or len(times) == WARM_RUNS):
            return statistics.median(times)


def ready(program, flags):
    import jaxlib
    first_ms = program.run()
    steady_ms = warm_up(program)
    return {"compiler": "xla", "jax": program.jax.__version__,
            "jaxlib": jaxlib.__version__,
            "device": program.device.device_kind,
            "platform": program.device.client.platform_version,
            "python": sys.version.split()[0], "flags": flags,
            "load_ms": program.load_ms, "compile_ms": program.compile_ms,
            "first_ms": first_ms, "steady_ms": steady_ms}


def answer(program, line):
    word, _, rest = line.partition(" ")
    if word == "sample":
        count = min(max(int(rest), 1), MOST_RUNS)
        ns = [program.run() * 1e6 for _ in range(count)]
        return f"sample {statistics.median(ns):.9g} {min(ns):.9g} {max(ns):.9g} {count}"
    if word == "module":
        with open(rest, "w", encoding="utf-8") as file:
            file.write(program.text())
        return word
    if word == "save":
        program.save(rest)
        return word
    raise ValueError(f"unknown question '{word}'")


def main():
    module, values, flags = arguments(sys.argv[1:])
    try:
        program = Program(module, values, flags)
        print("ready", json.dumps(ready(program, flags)), flush=True)
        for line in sys.stdin:
            print(answer(program, line.rstrip("\n")), flush=True)
    except Exception as error:  # its words are the answer
        print(f"XLA: {str(error).strip().splitlines()[0][:400]}",
              file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
