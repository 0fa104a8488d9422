// SPDX-License-Identifier: Apache-2.0
// The colours of drawings, light and dark, and those of heat.

/**
 * @typedef {{ink: string, soft: string, line: string, paper: string, card: string, accent:
 * string, outline: string, dark: boolean, families: Record<string, string>, bad: string}} Theme
 */

/** @type {Record<"light" | "dark", Theme>} */
export const THEMES = {
    light: {
        ink: "#1b2230",
        soft: "#667085",
        line: "#a3acbb",
        paper: "#f6f7f9",
        card: "#ffffff",
        accent: "#215fdc",
        outline: "#ffe4bd",
        dark: false,
        bad: "#d92d20",
        families: {
            product: "#3b6fd6",
            norm: "#7a5af0",
            activation: "#12a17c",
            reduce: "#b5689f",
            shape: "#98a2b3",
            math: "#d08a1d",
            attention: "#d4447a",
            data: "#5b8fa8",
            end: "#475467",
            other: "#8a8f98",
            module: "#8a94a6"
        }
    },
    dark: {
        ink: "#e7ebf2",
        soft: "#96a0b2",
        line: "#55607a",
        paper: "#12151c",
        card: "#1d222d",
        accent: "#6ea2ff",
        outline: "#4d3319",
        dark: true,
        bad: "#ff6b5e",
        families: {
            product: "#6b9bff",
            norm: "#a58bff",
            activation: "#35c79d",
            reduce: "#d68cc0",
            shape: "#76809a",
            math: "#e3a94a",
            attention: "#f0709f",
            data: "#7fb5cf",
            end: "#aab4c5",
            other: "#8a93a5",
            module: "#6d7891"
        }
    }
};

const LEVELS = 96; // of heat: equal colours are drawn together

/** @type {Record<"light" | "dark", string[]>} */
const heats = {light: [], dark: []};

/** From cold to hot; shares of a run are many small ones and few large ones, so the root is taken.
 * @param {number} share @param {Theme} theme */
export function heatColor(share, theme) {
    const t = Math.min(1, Math.sqrt(Math.max(0, share)) * 1.25),
        level = Math.round(t * LEVELS) || 0,
        known = heats[theme.dark ? "dark" : "light"];
    return known[level] || (known[level] = mixed(level / LEVELS, theme));
}

/** @param {number} t from 0 to 1 @param {Theme} theme */
function mixed(t, theme) {
    const stops = theme.dark
        ? [
              [29, 34, 45],
              [94, 66, 32],
              [168, 84, 24],
              [214, 62, 38]
          ]
        : [
              [255, 255, 255],
              [255, 232, 168],
              [255, 178, 92],
              [240, 96, 72]
          ];
    const at = t * (stops.length - 1),
        low = Math.min(stops.length - 2, Math.floor(at)),
        part = at - low;
    const mix = stops[low].map((v, i) => Math.round(v + (stops[low + 1][i] - v) * part));
    return `rgb(${mix.join(",")})`;
}

/** @returns {Theme} the theme that the page has now */
export const themeNow = () => THEMES[document.documentElement.dataset.theme === "dark" ? "dark" : "light"];
