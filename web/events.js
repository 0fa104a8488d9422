// SPDX-License-Identifier: Apache-2.0
// What happens on the server, from GET /v1/events. By fetch, so that the token goes in a header and
// not in an address. One stream while a view listens and its page is seen: a browser has six
// connections to a server, and pages in the background must not hold them.
import {ApiError, stream} from "./api.js";

/** @typedef {{kind: string, data: any}} Happening */
/** @typedef {"connecting" | "live" | "paused" | "forbidden"} State */

const MOST_BYTES = 65536,
    LONGEST_PAUSE = 30000;

/** Whole events of a text, and what is left of it. @param {string} text */
export function eventsOf(text) {
    const blocks = text.split("\n\n"),
        rest = blocks.pop() || "";
    const found = [];
    for (const block of blocks) {
        const kind = /^event: (.*)$/m.exec(block),
            data = /^data: (.*)$/m.exec(block);
        if (!kind || !data) continue;
        try {
            found.push({kind: kind[1], data: JSON.parse(data[1])});
        } catch {
            /* no event of ours */
        }
    }
    // an event without an end is not collected for ever
    return {found, rest: rest.length > MOST_BYTES ? "" : rest};
}

/** @param {number} ms @param {AbortSignal} signal */
const pause = (ms, signal) =>
    new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        signal.addEventListener("abort", () => (clearTimeout(timer), resolve(null)), {once: true});
    });

/** Until the page is seen. @param {AbortSignal} signal */
const seen = (signal) =>
    new Promise((resolve) => {
        const done = () => {
            if (document.hidden && !signal.aborted) return;
            document.removeEventListener("visibilitychange", done);
            resolve(null);
        };
        document.addEventListener("visibilitychange", done);
        signal.addEventListener("abort", done, {once: true});
        done();
    });

/** @param {AbortSignal} signal @param {(one: Happening) => void} take @param {() => void} begun */
async function readStream(signal, take, begun) {
    const reply = await stream("/v1/events", signal),
        reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    begun();
    let text = "";
    for (;;) {
        const {value, done} = await reader.read();
        if (done) return;
        const {found, rest} = eventsOf(text + value);
        text = rest;
        found.forEach(take);
    }
}

/**
 * Calls `take` for each event until the returned function is called. After the end of a stream
 * there is a pause, a longer one each time it does not begin.
 * @param {(one: Happening) => void} take
 * @param {(state: State) => void} tell
 */
export function follow(take, tell) {
    const end = new AbortController(),
        {signal} = end;
    let one = new AbortController(); // of the stream that is read now
    const leave = () => one.abort(),
        hidden = () => document.hidden && leave();
    document.addEventListener("visibilitychange", hidden);
    window.addEventListener("pagehide", leave);
    signal.addEventListener("abort", () => {
        document.removeEventListener("visibilitychange", hidden);
        window.removeEventListener("pagehide", leave);
        leave();
    });
    const work = async () => {
        for (let ms = 1000; !signal.aborted; ms = Math.min(2 * ms, LONGEST_PAUSE)) {
            await seen(signal);
            if (signal.aborted) return;
            tell("connecting");
            one = new AbortController();
            try {
                await readStream(one.signal, take, () => {
                    ms = 500;
                    tell("live");
                });
            } catch (error) {
                const refused = error instanceof ApiError && [401, 403].includes(error.status);
                if (refused && !signal.aborted) return tell("forbidden");
            }
            if (signal.aborted) return;
            tell("paused");
            await pause(ms, signal);
        }
    };
    work();
    return () => end.abort();
}
