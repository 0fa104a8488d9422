// SPDX-License-Identifier: Apache-2.0
// Runs before the rest of the page has come: asks for the graph that the address names, so that it is
// read meanwhile.
import {placeOf} from "./address.js";
import {askEarly} from "./session.js";

const place = placeOf();
if (place.tab !== "start") askEarly(place.name, place.version);
