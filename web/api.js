// SPDX-License-Identifier: Apache-2.0
// Calls of the HTTP API. Each is remembered as the curl command that does the same. The token lives
// in sessionStorage: it ends with the tab and is never part of an address.

const BASE = new URL("./", document.baseURI),
    TOKEN = "fxserve-token";
/** @type {{askToken: (wrong: boolean) => Promise<boolean>}} */
export const hooks = {askToken: async () => false};
/** @type {{method: string, path: string, body: any}[]} the last calls, the newest first */
export const calls = [];
const MOST_CALLS = 60;

export class ApiError extends Error {
    /** @param {number} status @param {any} reply */
    constructor(status, reply) {
        super(reply && typeof reply.error === "string" ? reply.error : `the server answered ${status}`);
        this.status = status;
        this.code = (reply && reply.code) || "";
        this.node = (reply && reply.node) || "";
        this.details = (reply && reply.details) || null;
    }
}

/** @returns {Record<string, string>} */
function bearer() {
    const token = sessionStorage.getItem(TOKEN);
    return token ? {Authorization: `Bearer ${token}`} : {};
}

/** @param {string} token */
export function setToken(token) {
    if (token) sessionStorage.setItem(TOKEN, token);
    else sessionStorage.removeItem(TOKEN);
}

/** @type {Promise<boolean> | null} */
let asked = null;

/**
 * Another token, after one was refused: calls that are refused together ask once.
 * @param {Record<string, string>} sent the headers that were refused
 * @returns {Promise<boolean>} whether there is one
 */
function otherToken(sent) {
    const now = bearer().Authorization;
    if (now !== undefined && now !== sent.Authorization) return Promise.resolve(true);
    asked =
        asked ||
        hooks.askToken("Authorization" in sent).finally(() => {
            asked = null;
        });
    return asked;
}

/** Of equal calls the last one stays. @param {string} method @param {string} path @param {any} body */
function remember(method, path, body) {
    const before = calls.findIndex((one) => one.method === method && one.path === path);
    if (before >= 0) calls.splice(before, 1);
    calls.unshift({method, path, body});
    calls.length = Math.min(calls.length, MOST_CALLS);
}

/** @param {string} path */
const urlOf = (path) => new URL(path.replace(/^\//, ""), BASE);

/**
 * @param {string} method
 * @param {string} path
 * @param {{body?: any, as?: "json" | "text" | "bytes", signal?: AbortSignal}}
 * [options]
 * @returns {Promise<any>}
 */
export async function call(method, path, options = {}) {
    const {body, as = "json", signal} = options,
        binary = body instanceof ArrayBuffer || body instanceof Blob;
    const headers = {
        ...bearer(),
        ...(body === undefined || binary ? {} : {"Content-Type": "application/json"})
    };
    remember(method, path, body);
    const reply = await fetch(urlOf(path), {
        method,
        headers,
        signal,
        credentials: "omit",
        cache: "no-store",
        body: body === undefined ? undefined : binary ? body : JSON.stringify(body)
    });
    if (reply.status === 401 && (await otherToken(headers))) return call(method, path, options);
    if (!reply.ok) throw new ApiError(reply.status, await reply.json().catch(() => null));
    if (reply.status === 204) return null;
    return as === "text"
        ? reply.text()
        : as === "bytes"
          ? reply.arrayBuffer()
          : JSON.parse(await reply.text());
}

/** @param {string} path @param {object} [options] */
export const get = (path, options) => call("GET", path, options);
/** @param {string} path @param {any} body @param {object} [options] */
export const post = (path, body, options) => call("POST", path, {...options, body});

/** A reply that goes on. Never asks for a token. @param {string} path @param {AbortSignal} signal */
export async function stream(path, signal) {
    remember("GET", path, undefined);
    const options = {headers: bearer(), signal, credentials: "omit", cache: "no-store"};
    const reply = await fetch(urlOf(path), /** @type {RequestInit} */ (options));
    if (!reply.ok) throw new ApiError(reply.status, await reply.json().catch(() => null));
    return reply;
}

/**
 * An upload with progress.
 * @param {string} path
 * @param {Blob | FormData} body
 * @param {(share: number) => void} progress
 */
export function upload(path, body, progress) {
    remember("PUT", path, body instanceof File ? {file: body.name} : {form: true});
    return new Promise((resolve, reject) => {
        const request = new XMLHttpRequest(),
            sent = bearer();
        request.open("PUT", urlOf(path));
        for (const [key, value] of Object.entries(sent)) request.setRequestHeader(key, value);
        request.upload.onprogress = (event) => progress(event.total ? event.loaded / event.total : 0);
        request.onerror = () => reject(new Error("the connection to the server was lost"));
        request.onload = async () => {
            let reply = null;
            try {
                reply = JSON.parse(request.responseText);
            } catch {
                /* said below */
            }
            if (request.status === 401 && (await otherToken(sent)))
                upload(path, body, progress).then(resolve, reject);
            else if (request.status >= 200 && request.status < 300) resolve(reply);
            else reject(new ApiError(request.status, reply));
        };
        request.send(body);
    });
}

/** Text in single quotes for a shell. @param {string} text */
const quoted = (text) =>
    /^[\w./:=@,?&%+-]+$/.test(text) && !/[?&]/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;

/** @param {{method: string, path: string, body: any}} entry */
export function curlOf({method, path, body}) {
    const token = sessionStorage.getItem(TOKEN) ? ` -H "Authorization: Bearer $TOKEN"` : "",
        url = quoted(String(urlOf(path)));
    if (body && body.file) return `curl${token} -T ${quoted(body.file)} ${url}`;
    if (body instanceof Blob || body instanceof ArrayBuffer)
        return `curl${token} --data-binary @input.npy ${url}`;
    if (body && body.form)
        return `curl${token} -X ${method} -F graph=@graph.json -F weights=@weights.safetensors ${url}`;
    if (path.startsWith("/v1/events")) return `curl -N${token} ${url}`;
    const verb = method === "GET" || (method === "POST" && body !== undefined) ? "" : ` -X ${method}`;
    return `curl${token}${verb} ${url}${body === undefined ? "" : ` -d ${quoted(JSON.stringify(body))}`}`;
}
