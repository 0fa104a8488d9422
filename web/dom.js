// SPDX-License-Identifier: Apache-2.0
// Elements and numbers as text. Text becomes text nodes only: no string is ever read as markup.

/** @typedef {Element | string | number | null | undefined | false} Child */

/**
 * h("a.big", {href: "#/", onclick: f}, children). Classes stand behind the tag. Properties may be
 * left out: on* are listeners, `style` is an object, all else are attributes; null and false
 * leave one out.
 * @param {string} tag
 * @param {...any} rest
 * @returns {any}
 */
export function h(tag, ...rest) {
    const [name, ...classes] = tag.split("."),
        element = document.createElement(name);
    const given = rest[0],
        isProps = given && typeof given === "object" && !(given instanceof Node) && !Array.isArray(given);
    if (classes.length) element.className = classes.join(" ");
    for (const [key, value] of Object.entries(isProps ? given : {})) {
        if (value === null || value === undefined || value === false) continue;
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (key === "style") Object.assign(element.style, value);
        else if (key === "value") /** @type {any} */ (element).value = value;
        else element.setAttribute(key, value === true ? "" : String(value));
    }
    add(element, isProps ? rest.slice(1) : rest);
    return element;
}

/** @param {Element} element @param {any[]} children */
export function add(element, children) {
    for (const child of children.flat(9))
        if (child !== null && child !== undefined && child !== false)
            element.append(child instanceof Node ? child : String(child));
}

/** @param {Element} element @param {...any} children */
export function fill(element, ...children) {
    element.replaceChildren();
    add(element, children);
}

const CONTROLS =
    "a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex='0']";

/** @param {Element} element @returns {HTMLElement[]} */
const controlsIn = (element) => [...element.querySelectorAll(/** @type {any} */ (CONTROLS))];

/** @param {Element} control */
const wordsOf = (control) => control.getAttribute("aria-label") || control.textContent;

/** The first control behind an element that can be seen. @param {Element} element */
const behind = (element) =>
    controlsIn(document.body).find(
        (one) =>
            element.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING &&
            one.getClientRects().length
    );

/**
 * Fills an element anew and keeps the focus in it: on the control with the same words, else on the
 * one in its place, else on the next one behind.
 * @param {Element} element @param {...any} children
 */
export function refill(element, ...children) {
    const held = document.activeElement;
    if (!held || held === element || !element.contains(held)) return fill(element, children);
    const before = controlsIn(element),
        at = before.indexOf(/** @type {HTMLElement} */ (held)),
        words = wordsOf(held),
        turn = before.slice(0, Math.max(0, at)).filter((one) => wordsOf(one) === words).length;
    fill(element, children);
    const after = controlsIn(element),
        same = after.filter((one) => wordsOf(one) === words);
    const next = same[turn] || same.at(-1) || after[at] || after.at(-1) || behind(element);
    next?.focus({preventScroll: true});
}

/** @param {Element | null} element */
const inWindow = (element) => {
    const {bottom, top} = element?.getBoundingClientRect() ?? {bottom: 0, top: 0};
    return bottom > 0 && top < innerHeight;
};

/**
 * Whatever has the focus in the window is still seen when other parts have grown or shrunk.
 * @param {() => void} change
 */
export function keepSight(change) {
    const seen = inWindow(document.activeElement);
    change();
    const held = document.activeElement;
    if (seen && held !== document.body && !inWindow(held)) held?.scrollIntoView({block: "nearest"});
}

/** @param {number | null | undefined} value microseconds */
export function us(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    if (value < 10) return `${value.toFixed(2)} µs`;
    if (value < 999.5) return `${value.toFixed(value < 100 ? 1 : 0)} µs`;
    if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e5 ? 2 : 0)} ms`;
    return `${(value / 1e6).toFixed(2)} s`;
}

/** @param {number} value */
export function bytes(value) {
    if (value < 1024) return `${value} B`;
    const power = Math.min(4, Math.floor(Math.log2(value) / 10));
    return `${(value / 2 ** (10 * power)).toFixed(1)} ${"KMGT"[power - 1]}iB`;
}

/** @param {number} value */
export function count(value) {
    if (value < 1e4) return String(value);
    const power = Math.min(4, Math.floor(Math.log10(value) / 3));
    return `${(value / 10 ** (3 * power)).toFixed(1)} ${"kMGT"[power - 1]}`;
}

/** @param {number} share */
export function percent(share) {
    const value = share * 100;
    return value >= 9.95
        ? `${value.toFixed(0)} %`
        : value >= 0.05
          ? `${value.toFixed(1)} %`
          : value > 0
            ? "< 0.1 %"
            : "0 %";
}

/** @param {number} value */
export function number(value) {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "−inf";
    const size = Math.abs(value);
    return value === 0
        ? "0"
        : size >= 1e5 || size < 1e-3
          ? value.toExponential(2)
          : String(Number(value.toPrecision(4)));
}

/** How long ago. @param {string | number} when */
export function ago(when) {
    const seconds = Math.max(0, (Date.now() - new Date(when).getTime()) / 1000);
    if (seconds < 60) return "just now";
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
    return new Date(when).toISOString().slice(0, 10);
}

/** Puts text on the clipboard. @param {string} text */
export async function copyText(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const area = h("textarea.offscreen", {value: text});
        document.body.append(area);
        area.select();
        const done = document.execCommand("copy");
        area.remove();
        return done;
    }
}

/** @param {string} name @param {Blob} blob */
export function download(name, blob) {
    const url = URL.createObjectURL(blob),
        link = h("a", {href: url, download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}
