#!/usr/bin/env python3
"""The results pages in a browser: no error, nothing from elsewhere, all by
keyboard, names for screen readers, contrast, numbers that lead somewhere.

  results_page_test.py LAWSON      exit 77: no Playwright, or no Chromium, here
"""
import os
import subprocess
import sys
import tempfile

import browser

failures = []


def check(what, good, detail=""):
    if not good:
        failures.append(what)
    print("ok  " if good else "FAIL", what, detail if not good else "", flush=True)


def make_pages(lawson, folder):
    """A comparison and a lone side, as timings from elsewhere."""
    both = os.path.join(folder, "both <b>.csv")
    alone = os.path.join(folder, "alone.csv")
    with open(both, "w") as f:
        f.writelines(f"{k},{s},{(110 if s == 'b' else 100) + k % 5 + (k * 7) % 3}\n" for k in range(20) for s in "ab")
    with open(alone, "w") as f:
        f.writelines(f"{k},a,{v}\n" for k, v in enumerate([170.2, 147.6, 147.6, 182.7, 166.5, 200.4]))
    db = "--db=" + os.path.join(folder, "r.db")
    pages = os.path.join(folder, "pages")
    for words in (["import", both, alone], ["page", "-o", pages]):
        subprocess.run([lawson, "results", *words, db], check=True, stdout=subprocess.DEVNULL)
    return pages


def check_page(page):
    name = os.path.basename(page.url)
    check(f"{name}: one h1, in English", page.locator("h1").count() == 1
          and page.locator("html").get_attribute("lang") == "en")
    for svg in page.locator("svg").all():
        ids = (svg.get_attribute("aria-labelledby") or "").split()
        named = ids and all(page.locator("#" + i).text_content() for i in ids)
        check(f"{name}: a plot has a name and a description", svg.get_attribute("role") == "img" and named, ids)
    targets = {a.get_attribute("href") for a in page.locator("a[href^='#']").all()}
    lost = [t for t in targets if page.locator(t).count() != 1]
    check(f"{name}: links within lead somewhere", not lost, lost)
    check(f"{name}: tables have captions", all(t.locator("caption").count() == 1 for t in page.locator("table").all()))
    for script, what in ((browser.NAMELESS, "all has a name"), (browser.PALE, "all can be read")):
        bad = page.evaluate(script)
        check(f"{name}: {what}", not bad, bad[:5])


def check_keyboard(page):
    page.keyboard.press("Tab")
    check("first stop: to the content", page.evaluate("document.activeElement.className") == "skip")
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    page.keyboard.press("Enter")
    check("Enter opens the samples", page.locator("details[open] tr").count() > 1)


def check_comparison(page):
    check("the verdict", page.locator(".verdict").text_content() == "SLOWER")
    check("a mark a sample", page.locator("svg circle.a").count() >= 20 and page.locator("svg rect.b").count() >= 20)
    check_keyboard(page)


def main():
    browser.need()
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as chromium:
        pages = make_pages(os.path.abspath(sys.argv[1]), folder)
        index = browser.Watched(chromium, os.path.join(pages, "index.html"))
        check_page(index.page)
        names = [a.get_attribute("href") for a in index.page.locator("td a:not([href*='#'])").all()]
        check("two runs", len(names) == 2, names)
        index.close()
        for name in names:
            for dark in (False, True):
                watched = browser.Watched(chromium, os.path.join(pages, name), dark=dark)
                check_page(watched.page)
                if name == names[0]:
                    check_comparison(watched.page)
                watched.close()  # asserts that nothing went wrong in it
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
