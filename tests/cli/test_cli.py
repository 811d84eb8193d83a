#!/usr/bin/env python3
"""The command's manners: exit codes, streams, JSON, suggestions, files.

  test_cli.py LAWSON
"""
import json
import os
import subprocess
import sys
import tempfile

LAWSON = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = """HloModule small

ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] multiply(x, x)
  ROOT z = f32[8] add(y, x)
}
"""
TAKE = """HloModule take

ENTRY e {
  x = f32[10,4] parameter(0)
  i = s32[5,1] parameter(1)
  ROOT g = f32[5,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
}
"""
UNKNOWN_CALL = """HloModule u

ENTRY e {
  x = f32[8] parameter(0)
  ROOT y = f32[8] custom-call(x), custom_call_target="no_such_target"
}
"""
SOFTMAX = """HloModule softmax

mx { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

sm { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  x = f32[64,1000] parameter(0)
  h = f32[64,1000] negate(x), metadata={op_name="jit(f)/neg" source_file="/home/u/attend.py" source_line=11}
  ninf = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[64] reduce(h, ninf), dimensions={1}, to_apply=mx
  topb = f32[64,1000] broadcast(top), dimensions={0}
  low = f32[64,1000] subtract(h, topb)
  ex = f32[64,1000] exponential(low), metadata={op_name="jit(f)/exp" source_file="/home/u/attend.py" source_line=11}
  sum = f32[64] reduce(ex, zero), dimensions={1}, to_apply=sm
  sumb = f32[64,1000] broadcast(sum), dimensions={0}
  ROOT y = f32[64,1000] divide(ex, sumb), metadata={op_name="jit(f)/div" source_file="/home/u/attend.py" source_line=12}
}
"""
LIBRARY = """HloModule lib

ENTRY e {
  x = c64[8] parameter(0)
  y = c64[8] multiply(x, x)
  z = c64[8] fft(y), fft_type=FFT, fft_length={8}
  ROOT w = c64[8] multiply(z, x)
}
"""
failed = []
tmp = tempfile.mkdtemp()


def path(name, text=None):
    p = os.path.join(tmp, name)
    if text is not None:
        with open(p, "w") as f:
            f.write(text)
    return p


def lawson(*args, text=None):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR")}
    return subprocess.run([LAWSON, *args], input=text, capture_output=True, text=True, env=env)


def expect(what, condition, done=None):
    if not condition:
        failed.append(what)
        print("FAILED:", what)
        if done is not None:
            print("  exit", done.returncode, "\n  stdout:", done.stdout[-600:], "\n  stderr:", done.stderr[-600:])


def exits(code, *args, says=None, text=None):
    done = lawson(*args, text=text)
    expect(f"{args} exits with {code}", done.returncode == code, done)
    if says:
        expect(f"{args} says {says!r}", says in done.stderr, done)
    return done


def one_object(done, command):
    try:
        j = json.loads(done.stdout)
    except ValueError as e:
        expect(f"{command} --json is one JSON object: {e}", False, done)
        return {}
    expect(f"{command}: schema", j.get("schema") == f"lawson.{command}/1", done)
    return j


small, take = path("small.hlo", SMALL), path("take.hlo", TAKE)
broken = path("broken.hlo", SMALL.replace("add(y, x)", "add(y, nowhere)"))
wrong = path("wrong.hlo", SMALL.replace("f32[8] multiply", "f32[9] multiply"))

# usage: exit 2, the option is named, the nearest suggested
exits(2)
exits(2, "rum", says="did you mean 'run'")
exits(2, "run", says="MODULE")
exits(2, "run", small, "extra", says="extra")
exits(2, "run", small, "--fusoin=none", says="--fusion")
exits(2, "run", small, "--fusion=nnone", says="none|xla|priority")
exits(2, "run", small, "--threads=many", says="--threads")
exits(2, "run", small, "--repeat", says="--repeat")
exits(2, "run", small, "--interp=yes", says="--interp")
exits(2, "run", small, "--compiler=gcc", says="lawson")
exits(2, "run", small, "--target=cpuu", says="cpu")
exits(2, "opt", small, "--passes=dec", says="dce")
exits(2, "opt", small, "--disable= dce", says="dce")
exits(2, "opt", small, "--disable=priority-fuson", says="priority-fusion")
exits(2, "opt", small, "--fuel=dce=x", says="dce")
exits(2, "opt", small, "--pass-option=no-such.a=1", says="no-such")
exits(2, "help", "priority-fuson", says="priority-fusion")

# bad or unsupported input: exit 1
exits(1, "run", path("nowhere.hlo"), says="nowhere.hlo")
done = exits(1, "fmt", broken, says="nowhere")
expect("errors carry line and column", "broken.hlo:6:" in done.stderr, done)
exits(1, "check", wrong, says="wrong.hlo:5:")
exits(1, "run", wrong)
exits(1, "run", "-", text="", says="stdin")
exits(1, "run", "-", text=UNKNOWN_CALL, says="no_such_target")
exits(1, "extract", small, "yy", says="y")
exits(1, "run", small, "--inputs", path("nowhere.npz"), says="nowhere.npz")

# products to stdout, all else to stderr
done = exits(0, "fmt", small)
expect("fmt prints the module", done.stdout.startswith("HloModule small") and not done.stderr, done)
again = exits(0, "fmt", "-", text=done.stdout)
expect("fmt is a fixpoint", again.stdout == done.stdout, again)
done = exits(0, "opt", small)
expect("opt prints a module alone", done.stdout.startswith("HloModule small"), done)
expect("opt's table is on stderr", "priority-fusion" in done.stderr and "pipeline cpu" not in done.stdout, done)
done = exits(0, "opt", small, "--disable=priority-fusion")
expect("a disabled pass is accounted for", "disabled: priority-fusion (" in done.stderr, done)
out = path("out.hlo")
done = exits(0, "opt", small, "-o", out)
expect("-o writes the file", done.stdout == "" and open(out).read().startswith("HloModule"), done)
done = exits(0, "opt", small, "--fusion=none", "--output=-")
expect("-o - is standard output", "HloModule" in done.stdout, done)
folder = path("passes")
exits(0, "opt", small, f"--dump-passes={folder}")
expect("--dump-passes writes modules", any(n.endswith(".hlo") for n in os.listdir(folder)))
for dump, word in [("--dump-kernels", "kernel"), ("--dump-plan", "live ranges"), ("--dump-llvm", "define"),
                   ("--dump-asm", "ret"), ("--dot", "digraph"), ("--report", "kernels, fused"), ("--decisions", "")]:
    done = exits(0, "opt", small, dump)
    expect(f"{dump} prints it", word in done.stdout and "HloModule" not in done.stdout, done)
proto = path("small.pb")
exits(0, "fmt", small, "--proto", "-o", proto)
done = exits(0, "fmt", proto)
expect("a proto is read", "multiply" in done.stdout, done)

# folders of dumps, log prefixes
dumps = path("dumps")
os.mkdir(dumps)
for n, t in [("module_0001.a.before_optimizations.txt", SMALL), ("module_0002.b.before_optimizations.txt", TAKE)]:
    with open(os.path.join(dumps, n), "w") as f:
        f.write(t)
exits(2, "check", dumps)
done = exits(2, "fmt", dumps, says="module_0002.b")
done = exits(0, "fmt", dumps, "--module=0002")
expect("--module chooses", "gather" in done.stdout, done)
exits(1, "fmt", dumps, "--module=zzz", says="zzz")
prefixed = "".join(f"I0000 00:00:1700000000.123456    1234 hlo.cc:12] {line}\n" for line in SMALL.split("\n"))
done = exits(0, "fmt", "-", text=prefixed)
expect("log prefixes are dropped", "multiply" in done.stdout, done)

# run
done = exits(0, "run", small, "--seed=5")
expect("run prints outputs on stdout", done.stdout.startswith("o0 f32[8] {"), done)
expect("run says the seed", "seed 5" in done.stderr, done)
interp = exits(0, "run", small, "--seed=5", "--interp")
expect("the interpreter agrees", interp.stdout == done.stdout, interp)
done = exits(0, "run", take)
expect("indices stay in range", "0..9" in done.stderr, done)
saved = path("out.npz")
exits(0, "run", small, "--save", saved)
exits(0, "run", small, "--expect", saved)
other = path("other.hlo", SMALL.replace("add(y, x)", "subtract(y, x)"))
done = exits(3, "run", other, "--expect", saved)
expect("a difference is shown", "FAR" in done.stdout, done)
done = exits(0, "run", small, "--repeat=5", "--threads=2", "--json")
j = one_object(done, "run")
expect("run --json has what it must", all(k in j for k in (
    "outputs", "compile_ms", "time_ms", "peak_bytes", "threads", "fusions", "kernels")), done)
expect("times", j.get("time_ms", {}).get("runs") == 5 and
       j["time_ms"]["min"] <= j["time_ms"]["median"] <= j["time_ms"]["max"], done)
done = exits(0, "run", small, "--brief", "--repeat=3")
expect("--brief is one line", done.stdout.count("\n") == 1 and not done.stderr, done)

# the other commands and their JSON
one_object(exits(0, "opt", small, "--json"), "opt")
one_object(exits(0, "fmt", small, "--json"), "fmt")
one_object(exits(0, "check", small, "--json"), "check")
j = one_object(exits(1, "check", wrong, broken, "--json"), "check")
expect("check lists problems", len(j.get("problems", [])) >= 2)
j = one_object(exits(0, "verify", small, "--json"), "verify")
expect("verify: the same bits", j.get("same") is True)
expect("verify: nothing not tested is called the same", all(
    r["verdict"] in ("same", "not tested") for r in j.get("roads", [])))
done = exits(0, "diff", small, small)
expect("diff: SAME", "SAME" in done.stdout, done)
done = exits(3, "diff", small, other)
expect("diff: MOVED", "MOVED" in done.stdout, done)
one_object(exits(3, "diff", small, other, "--json"), "diff")
done = exits(0, "extract", small, "y")
expect("extract gives a module", "multiply" in done.stdout and "add" not in done.stdout, done)
exits(0, "run", "-", text=done.stdout)
one_object(exits(0, "extract", small, "y", "--json"), "extract")
one_object(exits(0, "passes", "--json"), "passes")
done = exits(0, "targets")
expect("targets lists", "cpu" in done.stdout, done)
one_object(exits(0, "targets", "--json"), "targets")
one_object(exits(0, "doctor", "--json"), "doctor")
done = exits(0, "--version")
expect("--version", all(w in done.stdout for w in ("LLVM", "CPU", "target")), done)
for words in (["--help"], ["run", "--help"], ["help"], ["help", "run"], ["help", "dce"], ["help", "side-effect"]):
    done = exits(0, *words)
    expect(f"{words} prints", len(done.stdout) > 20 and not done.stderr, done)

# explain: edges in queue order, what is left in memory, the wall
soft = path("softmax.hlo", SOFTMAX)
generic = "--target=cpu-generic"


def explain(*args):
    return one_object(exits(0, "explain", *args, "--json"), "explain")


def edge(j, value, reader):
    found = [e for e in j.get("edges", []) if (e["value"], e["reader"]) == (value, reader)]
    expect(f"edge {value} > {reader} is listed", found)
    return found[0] if found else {"verdict": None, "flip": "", "reason": None}


done = exits(0, "explain", soft, "--fusion=xla", generic)
for words in ("order", "unfused > fused us", "what would flip it", "expensive-duplicated", "--force-edge=ex,sum",
              "value left in memory", "the wall: ex f32[64,1000], 256000 bytes", "needs all 1000 elements", "crosses L2",
              "docs/wall.md"):
    expect(f"explain says {words!r}", words in done.stdout, done)
expect("explain has no colour in a pipe", "\033" not in done.stdout, done)
expect("explain has colour on demand", "\033[32mfused" in lawson("explain", soft, "--color=always").stdout)
xla = explain(soft, "--fusion=xla", generic)
expect("the edges' fields", all(set(e) == {
    "seq", "order", "pass", "computation", "producer", "consumer", "value", "reader", "gate", "verdict", "reason",
    "unfused_us", "fused_us", "saved_us", "threshold_us", "bytes", "asked", "flip", "producer_source",
    "consumer_source"} for e in xla["edges"]))
expect("in queue order", [e["seq"] for e in xla["edges"]] == sorted(e["seq"] for e in xla["edges"]))
orders = [e["order"] for e in xla["edges"] if e["order"]]
expect("fused ones are numbered", orders == list(range(1, len(orders) + 1)) and orders)
expect("XLA:CPU asks no model", edge(xla, "ex", "sum")["saved_us"] is None)
wall = {w["value"]: w for w in xla["walls"]}
expect("the wall under xla is in memory", sorted(wall) == ["ex", "x"] and wall["x"]["input"] and all(
    w["in_memory"] and w["crosses"] == "L2" and w["bytes"] == 256000 and w["run"] == 1000 and w["strategy"] == "xla"
    for w in wall.values()), exits(0, "explain", soft, "--fusion=xla", generic))
expect("it crosses DRAM from half the last level on", wall.get("ex", {}).get("extent") == 16777216 // 2 // 256 + 1)
left = {v["value"]: v for v in xla["left_in_memory"]}
expect("classes under xla", [left.get(v, {}).get("class") for v in ("ex", "sum")] == ["wall", "not-worth-it"])
own = explain(soft, "--fusion=priority", generic)
expect("own fusion leaves nothing in memory", own["left_in_memory"] == [])
expect("the wall crosses nothing in one kernel", [w["crosses"] for w in own["walls"]] == ["nothing"] * 2 and
       all(4000 <= w["row_bytes"] < 9000 for w in own["walls"]))
expect("the model's numbers", all(e["saved_us"] > 0 for e in own["edges"] if e["verdict"] == "fused"))
long_rows = path("long.hlo", SOFTMAX.replace("1000", "300000"))
expect("a row that outgrows L2 crosses L3", [w["crosses"] for w in explain(long_rows, generic)["walls"]] == ["L3"] * 2)
expect("nothing fused, everything in memory", {v["value"] for v in explain(soft, "--fusion=none")[
    "left_in_memory"]} == {"h", "top", "topb", "low", "ex", "sum", "sumb"})
lib = explain(path("lib.hlo", LIBRARY))
expect("what a library takes", {v["class"] for v in lib["left_in_memory"]} == {"library"})

# its filters
j = explain(soft, "--fusion=xla", "--edge=ex,sum")
expect("--edge P,C", [(e["value"], e["reader"]) for e in j["edges"]] == [("ex", "sum")])
expect("--edge P", {e["value"] for e in explain(soft, "--edge=low")["edges"]} == {"low"})
expect("--edge by the fusion's name", explain(soft, "--fusion=xla", "--edge=,subtract_exponential_fusion")["edges"])
j = explain(soft, "--fusion=xla", "--at=attend.py:12")
expect("--at", j["edges"] and all(e["reader"] == "y" or e["value"] == "y" for e in j["edges"]))
j = explain(soft, "--fusion=xla", "--op=jit(f)/exp")
expect("--op", j["edges"] and all("ex" in (e["value"], e["reader"]) for e in j["edges"]))
exits(3, "explain", soft, "--at=attend.py:99")
exits(3, "explain", soft, "--op=jit(f)/ex")
exits(3, "explain", soft, "--edge=lowe,ex", says="did you mean low")
exits(2, "explain", soft, "--at=attend.py")
exits(2, "explain", soft, "--edge=,")
data = os.path.join(HERE, "..", "data", "corpus", "attn_f32_64x64", "before.dump.txt")
j = explain(data, "--fusion=xla", "--at=progs_nn.py:7")
expect("stack frames are looked up", j["walls"] and j["walls"][0]["value"] == "dot", exits(0, "explain", data))
j = explain(data, "--fusion=xla")
expect("naive attention's scores are the wall", [(w["value"], w["bytes"]) for w in j["walls"]] ==
       [("dot", 16384), ("exp.1", 16384)])
expect("the products' edges are refused by rule", edge(j, "div.11", "dot_general.3")["gate"] == "fusibility" and
       edge(j, "div.11", "dot_general.3")["flip"] == "nothing: rule")

# what docs/wall.md says
corpus = os.path.join(HERE, "..", "data", "corpus")
bench = os.path.join(corpus, "attn_f32_64x64", "bench.before.hlo")
words = open(os.path.join(HERE, "..", "..", "docs", "wall.md")).read()
for module, options in ((bench, ["--fusion=xla"]), (bench, []),
                        (os.path.join(corpus, "flash_scan_attn", "before.hlo"), ["--fusion=xla"])):
    done = exits(0, "explain", module, generic, *options)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("the wall:", "  under"))]
    expect(f"docs/wall.md says what {options} says", lines and all("    " + line + "\n" in words for line in lines), done)
j = explain(os.path.join(corpus, "flash_scan_attn", "before.hlo"), "--fusion=xla", generic)
expect("a streaming form's wall is a block", [w["run"] for w in j["walls"]] == [8])

# --force-edge and --forbid-edge: one decision, within the law
forced = explain(soft, "--fusion=xla", "--force-edge=ex,sum")
expect("forced", edge(forced, "ex", "sum")["reason"] == "forced" and edge(forced, "ex", "sum")["verdict"] == "fused")
j = explain(soft, "--fusion=priority", "--forbid-edge=sumb,y", "--forbid-edge=%topb,%low")
expect("forbidden, twice", all(edge(j, p, c)["reason"] == "forbidden" for p, c in (("sumb", "y"), ("topb", "low"))))
before, after = (json.loads(lawson("opt", soft, "--fusion=xla", "--json", *o).stdout)["kernels"]
                 for o in ((), ("--forbid-edge=sumb,y",)))
expect("a forbidden edge is a kernel more", after == before + 1)
attn = os.path.join(HERE, "..", "data", "corpus", "attn_f32_64x64", "before.hlo")
done = exits(1, "opt", attn, "--fusion=xla", "--force-edge=div.11,dot_general.3", says="consumer-kind")
expect("no module where the law refuses", done.stdout == "", done)
exits(1, "run", attn, "--force-edge=div.11,dot_general.3", says="lawson help kernel-phases")
exits(2, "opt", soft, "--force-edge=exx,sum", says="no gate was asked")
exits(2, "opt", soft, "--forbid-edge=sum", says="PRODUCER,CONSUMER")
exits(2, "opt", soft, "--forbid-edge=low,ex", "--force-edge=low,ex", says="both forced and forbidden")
plain = os.path.join(HERE, "..", "data", "gpu", "attn_f32_64x64", "gpu_plain", "fusion_in.pb")
for module, options in ((plain, ("--only-fusion",)), (attn, ())):
    options = ("--fusion=xla", "--target=h100", *options)
    j = explain(module, *options)
    expect("a GPU's scores are the wall", [w["bytes"] for w in j["walls"]] == [16384] and
           [v["bytes"] for v in j["left_in_memory"] if v["class"] == "wall"] == [16384])
    fused = [e for e in j["edges"] if e["verdict"] == "fused"]
    expect("a GPU's table: queue order, times, flips", [e["order"] for e in fused] == sorted(e["order"] for e in fused) and
           all(e["unfused_us"] >= e["fused_us"] > 0 for e in fused) and
           all("--forbid-edge=" in e["flip"] for e in fused))
    expect("names from before fusing", not any("fusion" in e["value"] + e["reader"] for e in j["edges"]))
    flip = fused[0]["flip"].split("--forbid-edge=")[1]
    turned = edge(explain(module, *options, "--forbid-edge=" + flip), fused[0]["value"], fused[0]["reader"])
    expect("a GPU's decision turns", turned["verdict"] == "refused" and turned["reason"] == "forbidden")
    stays = next(e for e in j["edges"] if e["reason"] == "producer-kind")
    exits(1, "opt", module, *options, "--force-edge=" + stays["producer"] + "," + stays["consumer"], says="producer-kind")
exits(4, "run", soft, "--target=h100", says="makes no code")
saved = path("soft.npz")
exits(0, "run", soft, "--save", saved)
exits(0, "run", soft, "--expect", saved, "--forbid-edge=low,ex")
done = exits(0, "run", soft, "--expect", saved, "--fusion=xla", "--force-edge=ex,sum")
expect("an override does not change a bit", "close (equal)" in done.stdout, done)
exits(0, "help", "forced")
exits(0, "help", "forbidden")

# targets --probe: a file that loads
probed = path("here.target")
done = exits(0, "targets", "--probe", "-o", probed)
text = open(probed).read()
expect("a probe says when, where and how", all(w in text for w in (
    "# Measured ", "UTC by: lawson targets --probe -o ", "load average", " cores.", "median of 15; ")), done)
done = exits(0, "targets", probed)
numbers = dict(line.split(" #")[0].split(" = ") for line in done.stdout.splitlines() if " = " in line)
expect("probed numbers are sane", float(numbers["exp_ns"]) < 50 and float(numbers["dram_gbps"]) > 0.1 and
       float(numbers["fma_gflops"]) > 1 and float(numbers["simple_ns"]) <= float(numbers["power_ns"]), done)
expect("--target=FILE takes it", explain(soft, f"--target={probed}")["target"] == numbers["name"])
exits(2, "targets", "-o", probed, says="--probe")

# colour: never into a pipe unless asked
done = exits(0, "check", small)
expect("no colour in a pipe", "\033" not in done.stdout, done)
done = exits(0, "check", small, "--color=always")
expect("--color=always", "\033" in done.stdout, done)

# the same bytes every time
first = lawson("opt", small).stdout
expect("opt is deterministic", all(lawson("opt", small).stdout == first for _ in range(3)))

# a reader that goes away
pipe = subprocess.Popen(f"'{LAWSON}' help | head -1; exit ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash",
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
pipe.communicate()
expect("a closed pipe is no error", pipe.returncode == 0)

print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
