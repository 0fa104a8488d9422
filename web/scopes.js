// SPDX-License-Identifier: Apache-2.0
// What the page's token may do. Buttons without their scope say so.
import {get} from "./api.js";
import {h} from "./dom.js";

/** @type {Promise<Set<string>> | null} */
let known = null;

/** @returns {Promise<Set<string>>} read, run, write, admin */
function scopes() {
    known =
        known ||
        get("/v1").then(
            (root) => new Set(root.scopes),
            () => {
                known = null;
                return new Set();
            }
        );
    return known;
}

/** Whether the token has a scope, as far as that is known. @param {"run" | "write"} scope */
export const may = (scope) => scopes().then((has) => has.size === 0 || has.has(scope));

/** Another token may do other things. */
export function forgetScopes() {
    known = null;
}

/**
 * A button that does nothing, and says why, where the token lacks the scope.
 * @template {HTMLElement} T
 * @param {"run" | "write"} scope
 * @param {T} button
 * @returns {T}
 */
export function needs(scope, button) {
    may(scope).then((has) => {
        if (has) return;
        button.setAttribute("disabled", "");
        button.title = `this token lacks the scope ${scope}`;
        button.append(h("span.small.soft", ` needs the scope ${scope}`));
    });
    return button;
}
