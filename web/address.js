// SPDX-License-Identifier: Apache-2.0
// Addresses of views: #/g/NAME@VERSION/TAB?node=...

/**
 * @typedef {{name: string, version: string}} Named
 * @typedef {{tab: string, name: string, version: string, query: URLSearchParams}} Place
 */

const TABS = ["graph", "run", "time", "change"];

/**
 * @param {Named} of
 * @param {string} tab
 * @param {Record<string, string> | URLSearchParams} [query]
 */
export function addressOf(of, tab, query = {}) {
    const version = of.version ? `@${encodeURIComponent(of.version)}` : "";
    const more = new URLSearchParams(query).toString();
    return `#/g/${encodeURIComponent(of.name)}${version}/${tab}${more ? `?${more}` : ""}`;
}

/** @param {string} text */
function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

/** @returns {Place} what the address of the page says */
export function placeOf() {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const [kind, of, tab] = path.split("/").map(decoded),
        [name, version] = (of || "").split("@");
    const known = kind === "g" && name;
    return {
        tab: known ? (TABS.includes(tab) ? tab : "graph") : "start",
        name: known ? name : "",
        version: (known && version) || "",
        query: new URLSearchParams(query || "")
    };
}

/** Which modules are open, for an address: all, none, or a list.
 * @param {{scopes: Map<string, any>}} graph @param {Set<string>} open */
export function openText(graph, open) {
    const some = [...open].filter((id) => id && graph.scopes.has(id));
    if (some.length === 0) return "-";
    return some.length === graph.scopes.size - 1 ? "*" : some.map(encodeURIComponent).join(",");
}

/** @param {{scopes: Map<string, any>}} graph @param {string | null} text of an address
 * @returns {Set<string> | null} null: it does not say */
export function openedIn(graph, text) {
    if (!text) return null;
    if (text === "*") return new Set(graph.scopes.keys());
    return new Set(["", ...text.split(",").map(decoded)].filter((id) => graph.scopes.has(id)));
}

/**
 * The same place with other members of its query, without another entry of the history.
 * @param {Record<string, string | null>} changes
 */
export function setQuery(changes) {
    const place = placeOf();
    for (const [key, value] of Object.entries(changes))
        if (value) place.query.set(key, value);
        else place.query.delete(key);
    history.replaceState(null, "", addressOf(place, place.tab, place.query));
}
