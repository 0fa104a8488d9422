// SPDX-License-Identifier: Apache-2.0
// What this machine can do: the speed of large products of matrices, measured by a run of its own
// when somebody first looks.
import {post} from "./api.js";

const SIZE = 512, // rows and columns; four products take about 10 ms on one core
    PRODUCTS = 4;

/** Products in a row, which depend on an input, so that none is computed ahead. */
function graph() {
    const call = (name, target, args) => ({op: "call_function", name, target, args});
    const products = Array.from({length: PRODUCTS}, (_, i) =>
        call(`m${i}`, "torch.mm", [i ? `%m${i - 1}` : "%filled", "%ones"])
    );
    return {
        format: "fx/1",
        nodes: [
            {op: "placeholder", name: "x", target: "x"},
            call("ones", "torch.ones", [[SIZE, SIZE]]),
            call("filled", "torch.mul", ["%ones", "%x"]),
            ...products,
            call("sum", "torch.sum", [`%m${PRODUCTS - 1}`]),
            {op: "output", name: "output", target: "output", args: ["%sum"]}
        ]
    };
}

/** @type {Promise<number | null> | null} */
let known = null;

/** @returns {Promise<number | null>} GFLOP/s of one run's threads; null: it could not be measured */
export function peak() {
    known =
        known ||
        post("/v1/run", {graph: graph(), inputs: {x: 1}, mode: "compiled", profile: true})
            .then(({profile}) => {
                const speeds = profile.nodes.filter((row) => row.flops > 1e6 && row.us > 0);
                return Math.max(...speeds.map((row) => row.flops / row.us / 1e3)) || null;
            })
            .catch(() => null);
    return known;
}
