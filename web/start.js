// SPDX-License-Identifier: Apache-2.0
// The list of graphs, and a place to drop one.
import {addressOf} from "./address.js";
import {ApiError, get, upload} from "./api.js";
import {Board} from "./board.js";
import {ago, bytes, fill, h, refill, us} from "./dom.js";
import {heatOf} from "./heat.js";
import {livePanel, seldom} from "./live.js";
import {failure} from "./main.js";
import {digitsOf, pad} from "./pad.js";
import {needs} from "./scopes.js";
import {current, openSession} from "./session.js";
import {graphOfFile, showRefused} from "./refused.js";

/** @param {string} name */
const link = (name) => addressOf({name, version: ""}, "graph");

/** Median and number of the runs that the server remembers. @param {any} stats */
function runsOf(stats) {
    const rows = stats.signatures || [],
        n = rows.reduce((sum, row) => sum + row.run_us.count, 0);
    const most = rows.slice().sort((a, b) => b.run_us.count - a.run_us.count)[0];
    return {n, p50: most ? most.run_us.p50 : null, p99: most ? most.run_us.p99 : null};
}

/** @param {any} graph @returns {HTMLElement} */
function rowOf(graph) {
    const runs = h("td.num.soft", "…"),
        time = h("td.num", ""),
        versions = h("td.num", graph.version);
    get(`/v1/graphs/${encodeURIComponent(graph.name)}/profile?by=module&depth=1`)
        .then((stats) => {
            const found = runsOf(stats);
            runs.textContent = found.n ? String(found.n) : "–";
            time.textContent = found.n ? us(found.p50) : "–";
            time.title = found.n ? `99 % within ${us(found.p99)}` : "";
        })
        .catch(() => {
            runs.textContent = "–";
        });
    return h(
        "tr.link",
        {
            onclick: () => {
                location.hash = link(graph.name);
            }
        },
        h(
            "td",
            h("a", {href: link(graph.name)}, h("b", graph.name)),
            graph.state === "damaged" ? h("span.tag.warm", "damaged") : null
        ),
        h("td", h("span.tag", graph.format)),
        versions,
        h("td.num", bytes(graph.upload_bytes)),
        runs,
        time,
        h("td.num.soft", ago(graph.created))
    );
}

/** @param {string} file */
const nameOf = (file) =>
    file
        .replace(/\.(pt2|json|fx\.json)$/g, "")
        .replace(/\.fx$/, "")
        .replace(/[^A-Za-z0-9_.-]+/g, "-")
        .replace(/^[.-]+/, "")
        .slice(0, 64) || "graph";

/** @param {File[]} files @returns {{name: string, body: Blob | FormData, graph: File}} */
function parcel(files) {
    const weights = files.find((file) => /\.safetensors$/.test(file.name)),
        graph = files.find((file) => file !== weights) || files[0];
    if (!weights || graph === weights) return {name: nameOf(graph.name), body: graph, graph};
    const form = new FormData();
    form.append("graph", graph);
    form.append("weights", weights);
    return {name: nameOf(graph.name), body: form, graph};
}

/** @param {File[]} files @param {HTMLElement} said */
async function send(files, said) {
    const {name, body, graph} = parcel(files),
        meter = h("progress", {max: 1, value: 0, "aria-label": "upload"});
    fill(said, h("p", `${graph.name}, ${bytes(graph.size)}, becomes `, h("b", name)), meter);
    try {
        await upload(`/v1/graphs/${encodeURIComponent(name)}`, body, (share) => {
            if (share < 1) meter.value = share;
            else meter.removeAttribute("value");
        });
        current.now = null;
        location.hash = link(name);
    } catch (error) {
        const show = async () => {
            try {
                showRefused(graph.name, await graphOfFile(graph), error);
            } catch (unreadable) {
                fill(said, failure(unreadable));
            }
        };
        const refused =
            error instanceof ApiError &&
            /unsupported|missing_state|lint/.test(error.code) &&
            /(json|pt2)$/.test(graph.name);
        fill(
            said,
            failure(error),
            refused ? h("button", {onclick: show}, "Show the graph and what is missing") : null
        );
    }
}

function dropArea() {
    const said = h("div", {"aria-live": "polite"}),
        pick = h("input", {
            type: "file",
            multiple: true,
            class: "offscreen",
            tabindex: -1,
            accept: ".pt2,.json,.safetensors",
            onchange: () => send([...pick.files], said),
            "aria-label": "choose a file"
        });
    const area = h(
        "div.drop",
        h("p", h("strong", "Drop a model here"), " to upload it"),
        h("p.small", "a .pt2 of torch.export, or FX JSON with its .safetensors"),
        h(
            "p",
            {style: {marginTop: "12px"}},
            needs("write", h("button", {onclick: () => pick.click()}, "Choose a file")),
            pick
        )
    );
    area.addEventListener("dragover", (event) => {
        event.preventDefault();
        area.classList.add("over");
    });
    area.addEventListener("dragleave", () => area.classList.remove("over"));
    area.addEventListener("drop", (event) => {
        event.preventDefault();
        area.classList.remove("over");
        if (event.dataTransfer.files.length) send([...event.dataTransfer.files], said);
    });
    return h("div", area, said);
}

/**
 * A small drawing of a graph, whose heat is that of the last run.
 * @param {import("./session.js").Session} session
 * @returns {{element: HTMLElement, begin: () => void, close: () => void}}
 */
function smallDrawing(session) {
    const element = h("div.board.small-board");
    const board = new Board(element, {
        select: (shape) => {
            const query = shape && shape.node ? {node: shape.node.name} : {};
            if (shape) location.hash = addressOf(session, "graph", query);
        },
        opened() {}
    });
    /** @type {any} */ (window).board = board; // for whoever looks from the console
    const warm = async () => {
        board.heat = await heatOf(session, "time");
        board.fused = session.fused;
        board.draw();
    };
    return {
        element,
        begin: async () => {
            board.graph = session.graph;
            session.listeners.add(warm);
            board.top = board.bottom = 0;
            await board.update();
            board.fit();
            await warm();
        },
        close: () => {
            session.listeners.delete(warm);
            board.close();
        }
    };
}

/**
 * The pad of the first graph that reads digits, and the graph at work.
 * @param {any[]} graphs
 * @param {HTMLElement} place
 * @returns {Promise<() => void>} what ends it
 */
async function showPad(graphs, place) {
    for (const graph of graphs.slice(0, 20)) {
        if (!/digit|mnist|lenet/i.test(graph.name)) continue;
        const session = await openSession(graph.name, "").catch(() => null);
        if (!session || !digitsOf(session.info)) continue;
        const drawing = smallDrawing(session),
            drawn = pad(session);
        fill(
            place,
            h(
                "div.card",
                h(
                    "div.headline",
                    h("h2.grow", "Draw a digit"),
                    h("a", {href: link(graph.name)}, `see ${graph.name} at work →`)
                ),
                drawn.element,
                drawing.element
            )
        );
        drawing.begin();
        return () => {
            drawn.close();
            drawing.close();
        };
    }
    return () => {};
}

/** @param {any} root the reply of GET /v1 */
function aboutServer(root) {
    const cores = `${root.cores} core${root.cores === 1 ? "" : "s"}`,
        runs = `${root.runs} runs since the start`;
    return [`fxserve ${root.version}`, `numbers of PyTorch ${root.torch}`, root.cpu, cores, runs].join(
        " · "
    );
}

/** @param {any[]} rows */
const tableOf = (rows) =>
    h(
        "table",
        h(
            "thead",
            h(
                "tr",
                h("th", "name"),
                h("th", "format"),
                ["version", "size", "runs", "median", "uploaded"].map((text) => h("th.num", text))
            )
        ),
        h("tbody", rows)
    );

const nothingYet = () =>
    h(
        "p",
        "No graph is here yet. Drop one below, or send it with curl: ",
        h("code", "curl -T model.pt2 …/v1/graphs/NAME")
    );

/** @param {HTMLElement} host */
export function startView(host) {
    const place = h("div"),
        server = h("p.soft"),
        list = h("div.card"),
        drop = dropArea(),
        again = seldom(() => load().catch((error) => fill(list, failure(error))), 300);
    const live = livePanel((kind, data) => {
        if (kind === "change" || (kind === "run" && data.state === "ended")) again();
    });
    host.append(
        h(
            "div.page",
            h(
                "div.inner",
                h("h1.titleline", "Graphs"),
                server,
                h(
                    "div.hero",
                    {style: {marginTop: "20px"}},
                    h("div.stack", list, drop, live.element),
                    h("div.stack", place)
                )
            )
        )
    );
    let gone = false,
        endPad = () => {};
    load()
        .then(async ({graphs}) => {
            endPad = await showPad(graphs, place);
            if (gone) endPad();
        })
        .catch((error) => fill(list, failure(error)));
    async function load() {
        const {graphs, next} = await get("/v1/graphs?limit=1000"),
            more = next ? h("tr", h("td", {colspan: 7, class: "soft"}, "and more")) : null;
        refill(list, graphs.length ? tableOf([graphs.map(rowOf), more]) : nothingYet());
        get("/v1").then((root) => {
            server.textContent = aboutServer(root);
        });
        return {graphs};
    }
    return {
        close: () => {
            gone = true;
            endPad();
            live.close();
        }
    };
}
