#!/usr/bin/env python3
"""bench, judge and results as commands.

  bench_test.py LAWSON [--kills=20]

A bench is killed at random moments: the database opens, holds every block that
was ever seen in it, and the run is continued to its end. Two benches at once
lose nothing.
"""
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

MODULE = """HloModule tiny
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY main {
  p = f32[64,64] parameter(0)
  low = f32[] constant(-inf)
  top = f32[64] reduce(p, low), dimensions={1}, to_apply=max
  wide = f32[64,64] broadcast(top), dimensions={0}
  away = f32[64,64] subtract(p, wide)
  ROOT e = f32[64,64] exponential(away)
}
"""
failures = []


def check(what, good, detail=""):
    if not good:
        failures.append(what)
    print("ok  " if good else "FAIL", what, detail if not good else "", flush=True)


class Lab:
    def __init__(self, lawson, folder):
        self.lawson, self.folder = lawson, folder
        self.db = os.path.join(folder, "r.db")
        self.module = os.path.join(folder, "tiny.hlo")
        with open(self.module, "w") as f:
            f.write(MODULE)
        self.env = dict(os.environ, LAWSON_DB=self.db, TMPDIR=folder)

    def start(self, *words):
        return subprocess.Popen([self.lawson, *words], env=self.env, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run(self, *words, text=None):
        return subprocess.run([self.lawson, *words], env=self.env, text=True, capture_output=True, input=text,
                              timeout=600)

    def blocks(self):
        """Every block with its samples, by run, round and number."""
        if not os.path.exists(self.db):
            return {}
        db = sqlite3.connect(self.db, timeout=30)
        found = {}
        try:
            rows = db.execute("SELECT b.run, b.round, b.number, s.slot, s.side, s.median_ns FROM block b "
                              "LEFT JOIN sample s ON s.block=b.id ORDER BY b.id, s.slot").fetchall()
        except sqlite3.OperationalError:  # no tables yet
            rows = []
        finally:
            db.close()
        for run, round_, number, *sample in rows:
            found.setdefault((run, round_, number), []).append(tuple(sample))
        return found

    def unfinished(self):
        """The newest run that can go on: one that is decided cannot."""
        if not os.path.exists(self.db):
            return None
        db = sqlite3.connect(self.db, timeout=30)
        try:
            return db.execute("SELECT max(id) FROM run WHERE kind='compare' AND status<>'decided'").fetchone()[0]
        except sqlite3.OperationalError:
            return None
        finally:
            db.close()

    def integrity(self):
        db = sqlite3.connect(self.db, timeout=30)
        try:
            return db.execute("PRAGMA integrity_check").fetchone()[0]
        finally:
            db.close()


def test_judge(lab):
    six = "pair,side,value\n" + "".join(f"{k + 1},a,{v}\n" for k, v in
                                        enumerate([170.2, 147.6, 147.6, 182.7, 166.5, 200.4]))
    r = lab.run("judge", "-", text=six)
    check("six lone processes: no comparison", r.returncode == 0 and "NO COMPARISON" in r.stdout, r)
    check("six lone processes: both spreads", "35.8 %" in r.stdout and "31.4 %" in r.stdout, r.stdout)
    check("no comparison is undecided", lab.run("judge", "-", "--fail-if=undecided", text=six).returncode == 3)
    rng = random.Random(1)
    slow = "".join(f"{k},{s},{(1.3 if s == 'b' else 1) * rng.uniform(.98, 1.02)}\n" for k in range(20) for s in "ab")
    r = lab.run("judge", "-", "--json", "--fail-if=slower", text=slow)
    j = json.loads(r.stdout)
    check("30 % slower", r.returncode == 3 and j["verdict"] == "SLOWER" and 1.25 < j["b_over_a"]["ratio"] < 1.35, r)
    r = lab.run("judge", "-", text="1,a,1\n1,b,x\n")
    check("a bad line is named", r.returncode == 1 and "<stdin>:2: error: 'x'" in r.stderr, r)
    check("a bad margin", lab.run("judge", "-", "--margin=2", text=slow).returncode == 2)


def test_refusals(lab):
    m = lab.module
    r = lab.run("bench", m, "--b=--disable=cse")
    check("equal modules are not timed", r.returncode == 0 and r.stdout.startswith("EQUAL MODULES"), r)
    check("equal modules leave no run", lab.run("results", "list").stdout == "")
    check("misspelt pass", lab.run("bench", m, "--b=--disable=nonsense").returncode == 2)
    check("an option that is none of a side's", lab.run("bench", m, "--b=--pairs=3").returncode == 2)
    check("an open quote", lab.run("bench", m, "--b='x").returncode == 2)
    check("unknown run", lab.run("bench", "--resume=77").returncode == 1)
    check("no module", lab.run("bench").returncode == 2)
    bad = os.path.join(lab.folder, "bad.hlo")
    with open(bad, "w") as f:
        f.write("HloModule x\nENTRY e { ROOT r = f32[] nonsense() }\n")
    r = lab.run("bench", bad)
    check("a bad module", r.returncode == 1 and "nonsense" in r.stderr, r)
    lab.env["LAWSON_PYTHON"] = "/nonexistent/python"
    check("a missing compiler", lab.run("bench", m, "--b=--compiler=xla").returncode == 4)
    del lab.env["LAWSON_PYTHON"]


def test_same(lab):
    r = lab.run("bench", lab.module, "--same=4", "--json")
    j = json.loads(r.stdout)["result"]
    check("--same", j["verdict"] == "SPREAD" and j["spread_ns"]["n"] == 4, r)
    rows = [b for b in lab.blocks().values() if [s[1] for s in b] == ["a"] * 4]
    check("--same: four samples a process", len(rows) == 4)


def test_two_at_once(lab):
    words = ("bench", lab.module, "--anyway", "--pairs=16", "--json")
    both = [lab.start(*words) for _ in range(2)]
    out = [p.communicate(timeout=600) for p in both]
    check("two at once: both end", all(p.returncode == 0 for p in both), out)
    told = [json.loads(o[0]) for o in out]
    check("two at once: two runs", told[0]["id"] != told[1]["id"], told)
    found = lab.blocks()
    for j in told:
        mine = [b for (run, _, _), b in found.items() if run == j["id"]]
        pairs = j["result"]["steady"]["pairs"]
        whole = len(mine) * 2 == pairs and all(sorted(s[1] for s in b) == list("aabbcc") for b in mine)
        check(f"two at once: run {j['id']} has all of its {pairs} pairs", whole, len(mine))


def test_kills(lab, kills):
    rng = random.Random(7)
    run, before, cut = None, {}, 0
    for k in range(kills):
        words = ["--resume=%d" % run] if run else [lab.module, "--anyway", "--margin=0.0001", "--pairs=96"]
        p = lab.start("bench", *words)
        # By turns at any moment, and soon after one more block.
        until = time.monotonic() + (rng.uniform(0.05, 1.2) if k % 2 else 20)
        here = len(lab.blocks())
        while time.monotonic() < until and p.poll() is None:
            now = lab.blocks()
            before.update(now)  # all of these are finished
            if len(now) > here and not k % 2:
                time.sleep(rng.uniform(0, 0.1))
                break
            time.sleep(0.02)
        cut += p.poll() is None
        p.send_signal(signal.SIGKILL)
        p.communicate()
        after = lab.blocks()
        lost = [key for key, value in before.items() if after.get(key) != value]
        half = [key for key, value in after.items() if len(value) != 6 and len(value) != 4]
        if lost or half or (after and lab.integrity() != "ok"):
            check(f"kill {k}", False, (lost, half))
        run = lab.unfinished()
    check(f"{kills} kills, {cut} in mid-run, lost nothing of {len(before)} blocks", cut * 2 > kills)
    if run is None:  # the last one was decided between two kills
        r = lab.run("bench", lab.module, "--anyway", "--pairs=16", "--json")
        return json.loads(r.stdout)["id"]
    r = lab.run("bench", f"--resume={run}", "--json")
    j = json.loads(r.stdout or "{}")
    check("it goes on to its end", r.returncode == 0 and j["result"]["at_look"], r)
    after = lab.blocks()
    check("and keeps what there was", all(after.get(key) == value for key, value in before.items()))
    return run


def test_resume_checks(lab, run):
    with open(lab.module, "a") as f:
        f.write("// moved\n")
    db = sqlite3.connect(lab.db)
    db.execute("UPDATE run SET status='undecided' WHERE id=?", (run,))
    db.commit()
    db.close()
    r = lab.run("bench", f"--resume={run}")
    check("another module is another run", r.returncode == 1 and "not what it was" in r.stderr, r)


def test_results(lab, run):
    shown = json.loads(lab.run("results", "show", str(run), "--json").stdout)["runs"][0]
    check("provenance", all(k in shown["provenance"] for k in ("machine", "cpu", "kernel", "governor", "load", "lawson",
                                                               "llvm", "inputs", "a", "b")), shown["provenance"])
    check("fingerprints", len(shown["provenance"]["a"]["optimised_fingerprint"]) == 16)
    text = lab.run("results", "export").stdout
    other = os.path.join(lab.folder, "other.db")
    file = os.path.join(lab.folder, "e.json")
    with open(file, "w") as f:
        f.write(text)
    check("import", lab.run("results", "import", file, f"--db={other}").returncode == 0)
    check("export of the import", lab.run("results", "export", f"--db={other}").stdout == text)
    again = lab.run("results", "import", file, f"--db={other}")
    check("a second import changes nothing", again.returncode == 0 and "already" in again.stderr
          and lab.run("results", "export", f"--db={other}").stdout == text, again)
    judged = lab.run("judge", "-", "--json", text=lab.run("results", "export", str(run), "--format=judge").stdout)
    ratio = json.loads(judged.stdout)["b_over_a"]["ratio"]
    check("judge agrees with bench", abs(ratio - shown["result"]["steady"]["b_over_a"]["ratio"]) < 1e-9, ratio)
    rows = lab.run("results", "export", "--format=csv").stdout.splitlines()
    check("CSV has every sample", len(rows) - 1 == sum(len(b) for b in lab.blocks().values()), len(rows))
    r = lab.run("results", "compare", str(run), str(run))
    check("compare with itself", r.returncode == 0 and ": 1.0000," in r.stdout, r)
    pages = os.path.join(lab.folder, "pages")
    r = lab.run("results", "page", "-o", pages)
    html = open(os.path.join(pages, f"run-{shown['uid']}.html"), encoding="utf-8").read()
    check("page", r.returncode == 0 and 'id="provenance"' in html and "<svg" in html and "http" not in
          html.replace("http://www.w3.org", ""), r)
    check("an unknown verb", lab.run("results", "shw").returncode == 2)
    check("bad JSON", lab.run("results", "import", lab.module).returncode == 1)


def test_xla(lab):
    lab.env["LAWSON_PYTHON"] = sys.executable
    r = lab.run("bench", lab.module, "--b=--compiler=xla", "--pairs=8", "--json")
    j = json.loads(r.stdout or "{}")
    good = r.returncode == 0 and j["outputs"]["close"] and j["result"]["steady"]["pairs"] == 8
    check("XLA as a side", good, r)
    r = lab.run("bench", lab.module, "--b=--compiler=xla --fusion=none")
    check("Lawson's options are not XLA's", r.returncode == 2, r)


def main():
    kills = 20
    for word in sys.argv[2:]:
        kills = int(word.removeprefix("--kills="))
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(os.path.abspath(sys.argv[1]), folder)
        test_judge(lab)
        test_refusals(lab)
        test_same(lab)
        test_two_at_once(lab)
        run = test_kills(lab, kills)
        test_results(lab, run)
        test_resume_checks(lab, run)
        try:
            import jaxlib  # noqa: F401
        except ImportError:
            print("no jaxlib: XLA is not tested")
        else:
            test_xla(lab)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
