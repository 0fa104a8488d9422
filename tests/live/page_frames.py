# SPDX-License-Identifier: Apache-2.0
"""Frames of the page (page.py) while its drawing moves, as the developer tools trace them."""
import json
import os

from service import Failed

SCALES = (0, 0.05, 0.12, 0.3, 0.6, 1)  # 0: the whole drawing
FRAME = 17  # milliseconds
MOST = 2 * FRAME  # of work, on a machine that is several times as slow as most
CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline",
              "disabled-by-default-devtools.timeline.frame", "blink.user_timing"]


def share(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def events_of(data):
    """What the page's process did while the drawing moved, and its main thread."""
    events = json.loads(data)["traceEvents"]
    begin, end = (next(one for one in events if one["name"] == f"pan {word}") for word in ("begins", "ends"))
    events = [one for one in events if one["pid"] == begin["pid"] and begin["ts"] <= one["ts"] <= end["ts"]]
    return sorted(events, key=lambda one: one["ts"]), begin["tid"]


def times_of(events, main):
    """Milliseconds between the beginnings of frames that were drawn, as the developer tools count them;
    and those of the main thread's processor time for each: scripts, styles, layout and painting. Other
    programs of the machine do not count in the latter."""
    begun = {one["args"]["frameSeqId"]: one["ts"] / 1000 for one in events if one["name"] == "BeginFrame"}
    drawn = [begun[one["args"]["frameSeqId"]] for one in events
             if one["name"] == "DrawFrame" and one["args"]["frameSeqId"] in begun]
    work = []
    for one in events:
        if one["tid"] != main:
            continue
        if one["name"] == "BeginMainThreadFrame":
            work.append(0)
        elif one["name"] == "RunTask" and one["ph"] == "X":
            if work:
                work[-1] += one.get("tdur", one["dur"]) / 1000
    return [after - before for before, after in zip(drawn, drawn[1:])], work


def traced(visit, scale):
    """Shapes that are seen, times between frames, work of each, and what the page laid out meanwhile."""
    chrome = visit.chrome
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_frames.js"),
              encoding="utf-8") as file:
        text = "\n".join(line for line in file.read().rstrip().rstrip(";").split("\n")
                         if not line.startswith("//"))
    seen, data = chrome.trace(CATEGORIES, f"({text})({scale}, {visit.frames})")
    events, main = events_of(data)
    times, work = times_of(events, main)
    laid = sum(one.get("tdur", 0) for one in events if one["name"] == "Layout") / 1000
    return seen, times, work, laid


def check_frames(visit):
    """While 10,000 shapes move, 95 % of frames cost less than a frame's time, and no element is laid out.
    What is drawn in time depends on the machine, so that is only printed."""
    for scale in SCALES:
        seen, times, work, laid = traced(visit, scale)
        fast = sum(one <= FRAME for one in times) / len(times)
        print(f"scale {scale or 'of all'}, {seen} shapes seen: {len(times)} frames, half within "
              f"{share(times, 0.5):.1f} ms, 95 % within {share(times, 0.95):.1f} ms, {fast * 100:.0f} % "
              f"within {FRAME} ms; work half {share(work, 0.5):.1f}, 95 % within {share(work, 0.95):.1f} ms")
        if len(work) < visit.frames // 2 or len(times) < 10:
            raise Failed(f"{len(work)} frames were begun and {len(times)} drawn of {visit.frames}")
        if share(work, 0.95) > MOST:
            raise Failed(f"95 % of frames at scale {scale} cost {share(work, 0.95):.1f} ms of work")
        if laid > FRAME:
            raise Failed(f"{laid:.1f} ms of layout while the drawing moves at scale {scale}")
