// SPDX-License-Identifier: Apache-2.0
// A form from the signature: each input is made, typed, or dropped as a file of tensors or a
// picture; outputs as bars, pictures and numbers.
import {addressOf} from "./address.js";
import {fill, h, us} from "./dom.js";
import {INPUT_FILES, isPicture, pictureOf, tensorsOf} from "./files.js";
import {failure} from "./main.js";
import {needs} from "./scopes.js";
import {current, inputsOf, run, runFile} from "./session.js";
import {flat, tensorOf, tensorView} from "./tensor.js";

/** @typedef {import("./session.js").Session} Session */
const SHOWN = 4000; // characters of an input that are edited as text

/** @param {any} input of the signature */
const sizesOf = (input) => (input.shape || []).map((size) => (typeof size === "number" ? size : 1));

/**
 * A tensor of random or equal numbers, as a run body takes it.
 * @param {any} input
 * @param {"random" | "zeros" | "ones"} kind
 */
function made(input, kind) {
    const shape = sizesOf(input),
        n = shape.reduce((a, b) => a * b, 1),
        whole = /int|bool/.test(input.dtype || "");
    const value = () =>
        kind === "zeros"
            ? 0
            : kind === "ones"
              ? 1
              : whole
                ? Math.floor(Math.random() * 2)
                : Math.round((Math.random() * 2 - 1) * 1e4) / 1e4;
    const data = Array.from({length: n}, value);
    return {shape, dtype: input.dtype, data: input.dtype === "bool" ? data.map(Boolean) : data};
}

/** @param {any} value */
const written = (value) => JSON.stringify(value);

/** What an input takes. @param {any} input */
const typeText = (input) =>
    `${input.dtype || input.type || ""} ${input.shape ? `[${input.shape.join(", ")}]` : ""}`;

/**
 * One input: its text, and buttons that fill it.
 * @param {any} input
 * @param {any} value
 * @param {(file: File) => void} dropped
 * @returns {{element: HTMLElement, read: () => any, put: (value: any) => void}}
 */
function field(input, value, dropped) {
    let hidden = /** @type {any} */ (undefined);
    const area = h("textarea", {
        rows: 4,
        spellcheck: "false",
        "aria-label": `input ${input.name}`,
        oninput: () => {
            hidden = undefined;
        }
    });
    const put = (next) => {
        if (next instanceof File) {
            hidden = next;
            area.value = `${next.name}: the server scales it as the graph says`;
            return;
        }
        const text = written(next);
        hidden = text.length > SHOWN ? next : undefined;
        area.value =
            text.length > SHOWN
                ? `${text.slice(0, SHOWN)} … (${text.length} characters; type to replace them)`
                : text;
    };
    const pick = h("input", {
        type: "file",
        accept: INPUT_FILES,
        class: "offscreen",
        tabindex: -1,
        "aria-label": `file for ${input.name}`,
        onchange: () => {
            if (pick.files[0]) dropped(pick.files[0]);
            pick.value = "";
        }
    });
    put(value);
    const element = h(
        "div",
        {style: {marginBottom: "14px"}},
        h(
            "div.row",
            h("b", input.name),
            h("span.small.soft.grow", typeText(input)),
            input.shape
                ? ["random", "zeros", "ones"].map((kind) =>
                      h(
                          "button.plain.small",
                          {onclick: () => put(made(input, /** @type {any} */ (kind)))},
                          kind
                      )
                  )
                : null,
            h(
                "button.plain.small",
                {
                    title: ".npy, .npz, .safetensors or a picture; or drop it here",
                    onclick: () => pick.click()
                },
                "file"
            ),
            pick
        ),
        area
    );
    element.addEventListener("dragover", (event) => event.preventDefault());
    element.addEventListener("drop", (event) => {
        event.preventDefault();
        if (event.dataTransfer.files[0]) dropped(event.dataTransfer.files[0]);
    });
    return {element, put, read: () => (hidden !== undefined ? hidden : parsed(area.value, input.name))};
}

/** @param {string} text @param {string} name */
function parsed(text, name) {
    try {
        return JSON.parse(text);
    } catch (error) {
        throw new Error(`input ${name} is no JSON: ${/** @type {Error} */ (error).message}`);
    }
}

/** @param {{program: string | null}} reply a run or its profile */
export const howRun = (reply) => (reply.program ? "compiled" : "node by node");

const WITHIN = [0.0001, 0.001, 0.01, 0.1].map((tolerance) => `within ${tolerance}`);

/** What the choice of bits says in a run body. @param {string} choice "", "int8", "within 0.01" */
export function bitsOf(choice) {
    if (choice.startsWith("within ")) return {tolerance: Number(choice.slice("within ".length))};
    return choice ? {precision: choice} : {};
}

/** @param {any} said of a run within a tolerance */
function toleranceText(said) {
    const fewer = said.nodes.filter((/** @type {any} */ node) => node.precision !== "f32").length,
        error = said.error.toPrecision(2),
        found = `error ${error} on ${said.verified} samples, ${fewer} nodes in fewer bits`;
    return h("p.small.soft", `within ${said.within}: ${said.why || found}`);
}

/** @param {Session} session @param {any} reply @param {HTMLElement} place */
function showReply(session, reply, place) {
    fill(
        place,
        h(
            "p.small.soft",
            reply.profile ? `${us(reply.profile.run_us)} · ${howRun(reply)} · ` : "",
            h("a", {href: addressOf(session, "graph")}, "see the heat"),
            " · ",
            h("a", {href: addressOf(session, "time")}, "see the time"),
            reply.seed !== undefined ? ` · seed ${reply.seed}` : ""
        ),
        reply.profile?.tolerance ? toleranceText(reply.profile.tolerance) : null,
        (reply.outputs || []).map((output) => {
            const tensor = tensorOf(output);
            return h(
                "div.card",
                {style: {marginTop: "14px"}},
                h("h2", output.name || output.node),
                output.top
                    ? topList(output.top)
                    : tensor
                      ? tensorView(tensor)
                      : h("pre.code", JSON.stringify(output, null, 1).slice(0, 6000))
            );
        })
    );
}

/** @param {any} top the greatest values of each row, with labels */
function topList(top) {
    const rows = Array.isArray(top[0]) ? top.slice(0, 6) : [top];
    return rows.map((row) =>
        h(
            "table.small",
            row.map((one) => h("tr", h("td", one.label || one.index), h("td.num", one.value)))
        )
    );
}

class RunView {
    /** @param {HTMLElement} host */
    constructor(host) {
        this.session = /** @type {Session} */ (current.now);
        this.said = h("div", {"aria-live": "polite"});
        this.place = h("div");
        this.busy = false;
        this.form = h("div");
        this.mode = h(
            "select",
            {"aria-label": "mode"},
            ["auto", "eager", "compiled"].map((name) => h("option", name))
        );
        this.precision = h(
            "select",
            {"aria-label": "precision", title: "bits of products with weights; compiled runs only"},
            ["as the graph says", "f32", "bf16", "int8", ...WITHIN].map((name, i) =>
                h("option", {value: i ? name : ""}, name)
            )
        );
        this.seed = h("input", {
            type: "number",
            min: 0,
            placeholder: "seed",
            "aria-label": "seed",
            style: {width: "90px"}
        });
        this.outputs = h("input.grow", {
            placeholder: "nodes to fetch, else the outputs",
            "aria-label": "nodes to fetch"
        });
        this.halt = h("input", {type: "checkbox"});
        this.fields =
            /** @type {{name: string, input: any, read: () => any, put: (value: any) => void,
             * element: HTMLElement}[]} */ ([]);
        this.go = needs("run", h("button.first", {onclick: () => this.start()}, "Run"));
        host.append(this.page());
        this.begin(false).then(() => this.first());
    }

    page() {
        const n = this.session.rules.length,
            words = n === 1 ? "1 rule of Change counts here, too" : `${n} rules of Change count here, too`,
            rules = n ? h("span.tag", words) : null;
        return h(
            "div.page",
            h(
                "div.inner.columns",
                h(
                    "div",
                    h("h1.titleline", "Run"),
                    h(
                        "div.row",
                        {style: {margin: "12px 0"}},
                        h("button", {onclick: () => this.begin(true)}, "The example"),
                        rules
                    ),
                    this.form,
                    h(
                        "p.small.soft",
                        "A .npy, .npz, .safetensors file or a picture can be dropped on an input."
                    ),
                    h("div.row", this.mode, this.precision, this.seed),
                    h("div.row", {style: {marginTop: "8px"}}, this.outputs),
                    h(
                        "div.row",
                        {style: {margin: "14px 0"}},
                        this.go,
                        h("label.row.small", this.halt, "end at the first NaN or infinity")
                    ),
                    this.said
                ),
                this.place
            )
        );
    }

    first() {
        const {result} = this.session;
        if (result && result.outputs) showReply(this.session, result, this.place);
        else fill(this.place, h("p.note", "Outputs appear here. ", h("kbd", "Enter"), " runs."));
    }

    /** A field for each input. @param {boolean} example whether what was typed is forgotten */
    async begin(example) {
        if (example) this.session.inputs = null;
        try {
            const given = await inputsOf(this.session),
                infos = this.session.info.inputs || [],
                list = Array.isArray(given);
            const names = list ? given.map((_, i) => infos[i]?.name || String(i)) : Object.keys(given);
            this.fields = names.map((name, i) => {
                const input = infos.find((x) => x.name === name) || {name},
                    value = list ? given[i] : given[name];
                return {name, input, ...field(input, value, (file) => this.take(file, name))};
            });
            fill(
                this.form,
                this.fields.map((one) => one.element)
            );
        } catch (error) {
            fill(this.said, failure(error));
        }
    }

    /**
     * A file for an input. What has several tensors fills the inputs of their names.
     * @param {File} file
     * @param {string} name of the input that it was dropped on
     */
    async take(file, name) {
        const one = this.fields.find((each) => each.name === name),
            {info} = this.session;
        fill(this.said);
        try {
            if (isPicture(file)) {
                const prepared = info.image && this.fields.length === 1;
                return one.put(prepared ? file : await pictureOf(file, one.input));
            }
            const found = await tensorsOf(file),
                fit = this.fields.filter((each) => found.has(each.name));
            if (fit.length) for (const each of fit) each.put(flat(found.get(each.name)));
            else if (found.size === 1) one.put(flat([...found.values()][0]));
            else {
                const names = [...found.keys()].slice(0, 12).join(", ") || "no tensors";
                throw new Error(`${file.name} has ${names}; no input is called so`);
            }
        } catch (error) {
            fill(this.said, failure(error));
        }
    }

    /** The picture that the server takes as it is, if the form holds one. */
    picture() {
        const value = this.fields.length === 1 ? this.fields[0].read() : null;
        return value instanceof File ? value : null;
    }

    /** What the form says, as a run body. */
    body() {
        const wanted = this.outputs.value
                .split(",")
                .map((name) => name.trim())
                .filter(Boolean),
            {session, seed} = this,
            halt = this.halt.checked ? [{match: {}, halt_on: ["nan", "inf"]}] : [],
            rules = [...session.rules, ...halt];
        session.inputs = Object.fromEntries(this.fields.map((one) => [one.name, one.read()]));
        return {
            inputs: session.inputs,
            mode: this.mode.value,
            encoding: "b64",
            ...bitsOf(this.precision.value),
            ...(seed.value ? {seed: Number(seed.value)} : {}),
            ...(wanted.length ? {outputs: wanted} : {}),
            ...(rules.length ? {overrides: rules} : {})
        };
    }

    async start() {
        if (this.busy) return;
        this.busy = true; // the button stays as it is: focus leaves one that is disabled
        fill(this.said, h("p.soft", "running …"));
        try {
            const picture = this.picture();
            const reply = await (picture
                ? runFile(this.session, await picture.arrayBuffer())
                : run(this.session, this.body()));
            fill(this.said);
            showReply(this.session, reply, this.place);
        } catch (error) {
            const node = /** @type {any} */ (error).node;
            fill(
                this.said,
                failure(error),
                node ? h("a", {href: addressOf(this.session, "graph", {node})}, `show ${node}`) : null
            );
        }
        this.busy = false;
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        if (event.key !== "Enter") return false;
        this.start();
        return true;
    }
}

/** @param {HTMLElement} host */
export const runView = (host) => new RunView(host);
