"""Debian's Chromium, driven by Playwright, for tests of the laboratory's pages.

Every page that a test opens is offline and watched: a console message, an error
in a script or a request beyond the page's own file fails the test.
"""
import contextlib
import os
import pathlib
import shutil
import sys

SKIP = 77


def available():
    """None, or why there is no browser here."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not in this Python (tools/setup.sh check)"
    if not shutil.which("chromium"):
        return "chromium is not installed (tools/setup.sh check)"
    return None


def need():
    why = available()
    if why:
        print(f"skipped: {why}")
        sys.exit(SKIP)


@contextlib.contextmanager
def chromium():
    from playwright.sync_api import sync_playwright
    with sync_playwright() as p:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = p.chromium.launch(executable_path=shutil.which("chromium"),
                                    args=flags)
        yield browser
        browser.close()


class Watched:
    """A page and what went wrong in it."""

    def __init__(self, browser, path, width=1360, height=850, dark=False):
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light")
        self.context.set_offline(True)
        self.page = self.context.new_page()
        self.wrong = []
        url = pathlib.Path(path).resolve().as_uri()
        self.page.on("console", lambda m: self.wrong.append(f"console: {m.text}"))
        self.page.on("pageerror", lambda e: self.wrong.append(f"error: {e}"))
        self.page.on("dialog", lambda d: (self.wrong.append("dialog"), d.dismiss()))
        self.page.on("request", lambda r: self.note_request(r.url, url))
        self.page.goto(url)

    def note_request(self, url, own):
        if url != own and not url.startswith("data:"):
            self.wrong.append(f"request: {url}")

    def close(self):
        self.context.close()
        assert not self.wrong, self.wrong


# What a screen reader would call an element; good enough for our own markup.
NAMELESS = """() => [...document.querySelectorAll(
    'button, a[href], input, select, summary, [role=button], [role=tab], ' +
    '[role=option], [role=img], [tabindex="0"]')].filter((e) => {
  if (e.closest('[hidden]')) return false;
  const by = (e.getAttribute('aria-labelledby') || '').split(' ')
    .map((id) => document.getElementById(id)).filter((x) => x);
  const name = e.getAttribute('aria-label') || by.map((x) => x.textContent)
    .join(' ') || (e.labels && [...e.labels].map((l) => l.textContent).join(' '))
    || e.textContent || e.getAttribute('title');
  return !name.trim();
}).map((e) => e.outerHTML.slice(0, 120))"""

# Visible HTML text whose contrast with what is behind it is below 4.5.
PALE = """() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const lum = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928
    ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((s, v, k) => s + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0.5) return c;
    }
    return [255, 255, 255];
  };
  const pale = [];
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg') || e.closest('[hidden]') || e.disabled ||
        ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(e.tagName)) continue;
    const own = [...e.childNodes].some((n) => n.nodeType === 3 &&
      n.textContent.trim());
    if (!own || !e.getClientRects().length) continue;
    const a = lum(parse(getComputedStyle(e).color)), b = lum(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) pale.push(`${ratio.toFixed(2)} ${e.outerHTML.slice(0, 90)}`);
  }
  return pale;
}"""
