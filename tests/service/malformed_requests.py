# SPDX-License-Identifier: Apache-2.0
"""Malformed run requests as a table: JSON itself, then tensors. A row is (name, graph, body,
status, code, word): `graph` is one of those malformed.py uploads first (relu: x of any dtype;
typed: x float32 [N, 3]; add: x and y; ints: x int64 [N]; bools: x bool [N]; keys: an export-like
dict is not needed here), `word` stands in the error's text (or in the reply, where the request is
legal), and names the culprit. A body is bytes, or text that is encoded as UTF-8.
"""

import malformed_observed
import malformed_rules

DEEP = (10, 100, 1000, 50000, 250000)


def inputs(x):
    return '{"inputs": {"x": ' + x + "}}"


def rows():
    yield from json_rows()
    yield from tensor_rows()
    yield from member_rows()
    yield from npy_rows()
    yield from malformed_rules.rows()
    yield from malformed_observed.rows()


def json_rows():
    for depth in DEEP:
        # Up to the rank a nested list is a tensor; beyond it the tensor reader says where.
        yield (f"lists nested {depth} deep", "relu", inputs("[" * depth + "1" + "]" * depth), 400,
               "bad_value", "nested more than 8 deep")
        yield (f"lists nested {depth} deep, never closed", "relu", inputs("[" * depth), 400, None,
               "x" if depth > 8 else "line 1")
        yield (f"objects nested {depth} deep", "relu", inputs('{"data": ' * depth + "1" + "}" * depth),
               (400, 413), None, "")
        yield (f"objects nested {depth} deep in an unknown member", "relu",
               '{"z": ' + '{"a": ' * depth + "1" + "}" * depth + "}", 400, "unknown_member", '"z"')
        yield (f"mixed nesting {depth} deep", "relu",
               '{"inputs": ' + '[{"x": ' * depth + "1" + "}]" * depth + "}", 400, None, "")
        yield (f"a graph nested {depth} deep", "",
               '{"graph": ' + "[" * depth + "]" * depth + ', "inputs": {}}', (400, 413), None, "")
    yield "nothing", "relu", "", 400, "bad_input", "the body is empty"
    yield "blanks", "relu", "  \n\t ", 400, "malformed", "line 2"
    yield ("a byte order mark", "relu", b"\xef\xbb\xbf" + inputs("1").encode(), 400, "malformed",
           "byte order mark")
    yield "UTF-16", "relu", inputs("1").encode("utf-16"), 400, "malformed", "line 1"
    yield "two documents", "relu", inputs("1") + inputs("1"), 400, "malformed", "line 1, column 21"
    yield "text behind the document", "relu", inputs("1") + " x", 400, "malformed", "line 1"
    yield "a comma behind the document", "relu", inputs("1") + ",", 400, "malformed", "line 1"
    yield "a NUL behind the document", "relu", inputs("1") + "\0", 400, "malformed", "line 1"
    yield "a comment", "relu", '{"inputs": /* x */ {"x": 1}}', 400, "malformed", "line 1, column 12"
    yield "a comma at the end of a list", "relu", inputs("[1, 2,]"), 400, None, ""
    yield "a comma at the end of an object", "relu", '{"inputs": {"x": 1,}}', 400, "malformed", "line 1"
    yield "two commas", "relu", inputs("[1,, 2]"), 400, None, ""
    yield "no comma", "relu", inputs("[1 2]"), 400, None, ""
    yield "no colon", "relu", '{"inputs" {"x": 1}}', 400, "malformed", "':'"
    yield "a key without quotes", "relu", '{inputs: {"x": 1}}', 400, "malformed", "line 1, column 2"
    yield "single quotes", "relu", "{'inputs': {'x': 1}}", 400, "malformed", "line 1, column 2"
    yield "a number as key", "relu", '{1: {"x": 1}}', 400, "malformed", "line 1, column 2"
    yield "True", "relu", inputs("True"), 400, None, ""
    yield "None", "relu", inputs("None"), 400, None, ""
    yield "undefined", "relu", inputs("undefined"), 400, None, ""
    yield "NaN without quotes", "relu", inputs("[NaN]"), 400, None, ""
    yield "Infinity without quotes", "relu", inputs("[Infinity]"), 400, None, ""
    yield "-Infinity without quotes", "relu", inputs("[-Infinity]"), 400, None, ""
    yield "a leading zero", "relu", inputs("[01]"), 400, None, ""
    yield "a leading plus", "relu", inputs("[+1]"), 400, None, ""
    yield "a leading point", "relu", inputs("[.5]"), 400, None, ""
    yield "a point at the end", "relu", inputs("[5.]"), 400, None, ""
    yield "an empty exponent", "relu", inputs("[1e]"), 400, None, ""
    yield "an exponent with two signs", "relu", inputs("[1e+-1]"), 400, None, ""
    yield "a minus alone", "relu", inputs("[-]"), 400, None, ""
    yield "two minuses", "relu", inputs("[--1]"), 400, None, ""
    yield "hexadecimal", "relu", inputs("[0x10]"), 400, None, ""
    yield "a digit group", "relu", inputs("[1_000]"), 400, None, ""
    yield "1e400", "relu", inputs("[1e400]"), 400, "bad_value", "1e400"
    yield "-1e400", "typed", inputs("[[1, 2, -1e400]]"), 400, "bad_value", "-1e400"
    yield "1e39 as float32", "typed", inputs("[[1e39, 0, 0]]"), 400, "bad_value", "1e39"
    yield "1e-400", "relu", inputs("[1e-400, 1.5]"), 200, None, "[0.0, 1.5]"
    yield "-0", "relu", inputs("[-0.0]"), 200, None, "0.0"
    yield ("an exponent of 20 digits", "relu", inputs("[1e99999999999999999999]"), 400, "bad_value",
           "within float32")
    yield "a negative exponent of 20 digits", "relu", inputs("[1e-99999999999999999999]"), 200, None, "[0.0]"
    yield "10,000 digits", "relu", inputs("[0." + "1" * 10000 + "]"), 200, None, "0.11111111"
    yield ("10,000 digits before the point", "relu", inputs("[" + "1" * 10000 + ".0]"), 400, "bad_value",
           "within float32")
    yield "10,000 zeros", "relu", inputs("[1." + "0" * 10000 + "]"), 200, None, "[1.0]"
    yield ("10,000 digits with their exponent", "relu", inputs("[" + "1" * 10000 + "e-9999]"), 200, None,
           "1.1111112")
    yield "an integer of 10,000 digits", "ints", inputs("[" + "1" * 10000 + "]"), 400, "bad_value", ""
    yield "2^63", "ints", inputs("[9223372036854775808]"), 400, "bad_value", "9223372036854775808"
    yield "-2^63", "ints", inputs("[-9223372036854775808]"), 200, None, "-9223372036854775808"
    yield "2^64 without a signature", "relu", inputs("[18446744073709551616]"), (200, 400), None, ""
    yield "bad UTF-8 in a key", "relu", b'{"inputs": {"x\xff": 1}}', 400, "malformed", "UTF-8"
    yield "bad UTF-8 in a text", "relu", b'{"inputs": {"x": "\xc3("}}', 400, "malformed", "UTF-8"
    yield "overlong UTF-8", "relu", b'{"inputs": {"\xc0\xaf": 1}}', 400, "malformed", "UTF-8"
    yield "a surrogate in UTF-8", "relu", b'{"inputs": {"\xed\xa0\x80": 1}}', 400, "malformed", "UTF-8"
    yield "beyond U+10FFFF", "relu", b'{"inputs": {"\xf4\x90\x80\x80": 1}}', 400, "malformed", "UTF-8"
    yield "half a character at the end", "relu", b'{"inputs": {"\xe2\x82', 400, "malformed", "line 1"
    yield "bad UTF-8 outside of texts", "relu", b'{"inputs": \xff}', 400, "malformed", "line 1"
    yield "U+0000 in a key", "relu", '{"inputs": {"x\\u0000": 1}}', 400, "malformed", "U+0000"
    yield ("U+0000 in a name", "relu", '{"outputs": ["relu\\u0000"], "inputs": {"x": 1}}', 400,
           "malformed", "U+0000")
    yield "a lone surrogate", "relu", '{"inputs": {"\\ud800": 1}}', 400, "malformed", "surrogate"
    yield ("surrogates in the wrong order", "relu", '{"inputs": {"\\udc00\\ud800": 1}}', 400, "malformed",
           "surrogate")
    yield "half an escape", "relu", '{"inputs": {"\\u12": 1}}', 400, "malformed", "line 1"
    yield "an unknown escape", "relu", '{"inputs": {"\\x41": 1}}', 400, "malformed", "line 1"
    yield "a line end in a text", "relu", '{"inputs": {"x\n": 1}}', 400, "malformed", "line 1"
    yield "a control character in a text", "relu", '{"inputs": {"x\x01": 1}}', 400, "malformed", "line 1"
    yield "an escaped key is the same key", "relu", '{"inputs": {"\\u0078": [1.5]}}', 200, None, "1.5"
    yield "a key twice", "relu", '{"inputs": {"x": 1, "x": 2}}', 400, None, "x"
    yield "a key twice, once escaped", "relu", '{"inputs": {"x": 1, "\\u0078": 2}}', 400, None, "x"
    yield ("a member twice", "relu", '{"profile": true, "inputs": {"x": 1}, "profile": false}', 400,
           "malformed", "profile")
    yield "inputs twice", "relu", '{"inputs": {"x": 1}, "inputs": {"x": 1}}', 400, "malformed", "inputs"
    yield ("dtype twice", "relu", inputs('{"dtype": "float32", "dtype": "int64", "data": [1]}'), 400,
           "malformed", "dtype")
    yield "data twice", "relu", inputs('{"data": [1], "data": [1]}'), 400, "malformed", "data"
    yield ("100,000 keys", "relu", '{"inputs": {' + ", ".join(f'"k{i}": 1' for i in range(100000)) + "}}",
           400, "bad_input", '"k0"')
    yield "a key of a megabyte", "relu", '{"' + "k" * 1000000 + '": 1}', 400, "unknown_member", "kkkk"
    yield "a text of a megabyte", "relu", '{"mode": "' + "k" * 1000000 + '"}', 400, "bad_value", '"mode"'
    yield ("20 MB of empty objects", "relu", '{"inputs": [' + "{}," * 7000000 + "{}]}", 413,
           "too_large", "values")
    yield ("20 MB of empty lists", "relu", '{"inputs": {"x": [' + "[]," * 7000000 + "[]]}}", 413,
           "too_large", "values")
    yield ("20 MB of empty objects in an unknown member", "relu", '{"z": [' + "{}," * 7000000 + "{}]}", 413,
           "too_large", "values")


def tensor_rows():
    yield ("a dimension of 0", "relu", inputs('{"shape": [0, 5], "dtype": "float32", "data": []}'), 200, None,
           '"shape": [0, 5]')
    yield ("a dimension of -1", "relu", inputs('{"shape": [-1], "dtype": "float32", "data": [1]}'), 400,
           "bad_value", "negative size -1")
    yield ("2^31 elements and none", "relu",
           inputs('{"shape": [2147483648], "dtype": "float32", "data": []}'), 400, None, "2147483648")
    yield ("2^31 + 1 elements", "relu", inputs('{"shape": [2147483649], "dtype": "float32", "data": [1]}'),
           (400, 413), None, "2147483649")
    yield ("2^63 - 1 elements", "relu",
           inputs('{"shape": [9223372036854775807], "dtype": "float32", "data": [1]}'), (400, 413), None,
           "9223372036854775807")
    yield ("2^63 elements", "relu",
           inputs('{"shape": [9223372036854775808], "dtype": "float32", "data": [1]}'), 400, None, "line 1")
    yield ("a product that wraps to 0", "relu",
           inputs('{"shape": [4294967296, 4294967296], "dtype": "float32", "data": []}'), (400, 413), None,
           "4294967296")
    yield ("a product that wraps to 4", "relu",
           inputs('{"shape": [4611686018427387905, 4], "dtype": "float32", "data": [1, 2, 3, 4]}'),
           (400, 413), None, "4611686018427387905")
    yield ("a product that wraps in b64", "relu",
           inputs('{"shape": [4611686018427387905, 4], "dtype": "float32", '
                  '"b64": "AAAAAAAAAAAAAAAAAAAAAA=="}'),
           (400, 413), None, "4611686018427387905")
    yield ("a fraction as size", "relu", inputs('{"shape": [1.5], "dtype": "float32", "data": [1]}'), 400,
           None, "line 1")
    yield ("a text as size", "relu", inputs('{"shape": ["1"], "dtype": "float32", "data": [1]}'), 400,
           None, "line 1")
    yield ("a number as shape", "relu", inputs('{"shape": 3, "dtype": "float32", "data": [1]}'), 400,
           None, "line 1")
    yield ("null as shape", "relu", inputs('{"shape": null, "dtype": "float32", "data": [1]}'), 400,
           None, "line 1")
    yield ("an object as shape", "relu", inputs('{"shape": {}, "dtype": "float32", "data": [1]}'), 400,
           None, "line 1")
    for rank in (9, 64):
        yield (f"a shape of rank {rank}", "relu",
               inputs('{"shape": [' + ", ".join(["1"] * rank) + '], "dtype": "float32", "data": [1]}'), 400,
               "bad_value", "more than 8 dimensions")
    yield ("a shape of rank 8", "relu",
           inputs('{"shape": [1, 1, 1, 1, 1, 1, 1, 1], "dtype": "float32", "data": [1]}'), 200, None,
           "[1, 1, 1, 1, 1, 1, 1, 1]")
    yield ("a shape of rank 0", "relu", inputs('{"shape": [], "dtype": "float32", "data": [1]}'), 200, None,
           '"shape": []')
    yield ("one value short", "relu", inputs('{"shape": [2, 2], "dtype": "float32", "data": [1, 2, 3]}'), 400,
           "shape_mismatch", "3 values")
    yield ("one value long", "relu", inputs('{"shape": [2, 2], "dtype": "float32", "data": [1, 2, 3, 4, 5]}'),
           400, "shape_mismatch", "5 values")
    yield ("data of another shape", "relu",
           inputs('{"shape": [2, 3], "dtype": "float32", "data": [[1, 2], [3, 4], [5, 6]]}'), 400,
           "shape_mismatch", "[3, 2]")
    yield ("one byte short", "relu", inputs('{"shape": [1], "dtype": "float32", "b64": "AAAA"}'), 400,
           "shape_mismatch", "3 bytes")
    yield ("one byte long", "relu", inputs('{"shape": [1], "dtype": "float32", "b64": "AAAAAAA="}'), 400,
           "shape_mismatch", "5 bytes")
    yield ("b64 without shape", "relu", inputs('{"dtype": "float32", "b64": "AAAAAA=="}'), 400,
           "bad_value", '"shape"')
    yield ("b64 without dtype", "relu", inputs('{"shape": [1], "b64": "AAAAAA=="}'), 400,
           "bad_value", '"dtype"')
    yield ("b64 that is none", "relu", inputs('{"shape": [1], "dtype": "float32", "b64": "A*AAAA=="}'), 400,
           None, "base64")
    yield ("b64 with a blank", "relu", inputs('{"shape": [1], "dtype": "float32", "b64": "AAAA AA=="}'), 400,
           None, "base64")
    yield ("b64 without padding", "relu", inputs('{"shape": [1], "dtype": "float32", "b64": "AAAAAA"}'), 400,
           None, "base64")
    yield ("b64 with padding in the middle", "relu",
           inputs('{"shape": [1], "dtype": "float32", "b64": "AA==AAAA"}'), 400, None, "b64")
    yield ("b64 with bits behind its end", "relu", inputs('{"shape": [1], "dtype": "uint8", "b64": "AB=="}'),
           400, None, "base64")
    yield ("b64 as a list", "relu", inputs('{"shape": [1], "dtype": "float32", "b64": [0]}'), 400,
           "bad_value", "b64")
    yield ("b64 with an escape", "relu",
           inputs('{"shape": [1], "dtype": "float32", "b64": "\\u0041AAAAA=="}'), 400, None, "base64")
    yield ("a bool of 2", "relu", inputs('{"shape": [1], "dtype": "bool", "b64": "Ag=="}'), 400,
           "bad_value", "0x02")
    yield ("data and b64",
           "relu", inputs('{"shape": [1], "dtype": "float32", "data": [0], "b64": "AAAAAA=="}'), 400,
           "bad_value", "not both")
    yield ("neither data nor b64", "relu", inputs('{"shape": [1], "dtype": "float32"}'), 400,
           "bad_value", "needs")
    yield "an empty object", "relu", inputs("{}"), 400, "bad_value", "needs"
    yield ("an unknown member", "relu", inputs('{"shape": [1], "data": [1], "name": "x"}'), 400,
           "unknown_member", '"name"')
    yield "an unknown dtype", "relu", inputs('{"dtype": "float33", "data": [1]}'), 400, "bad_value", "float33"
    yield "a dtype that is no text", "relu", inputs('{"dtype": 3, "data": [1]}'), 400, None, "line 1"
    yield "an empty dtype", "relu", inputs('{"dtype": "", "data": [1]}'), 400, "bad_value", "dtype"
    yield "ragged lists", "relu", inputs("[[1, 2], [3]]"), 400, "bad_value", "[1]"
    yield "ragged lists, longer", "relu", inputs("[[1, 2], [3, 4, 5]]"), 400, "bad_value", "[1]"
    yield "a number where a list was", "relu", inputs("[[1, 2], 3]"), 400, "bad_value", "[1]"
    yield "a list where a number was", "relu", inputs("[1, [2]]"), 400, "bad_value", "[1]"
    yield "ragged behind an empty list", "relu", inputs("[[], [1]]"), 400, "bad_value", "[1]"
    yield ("ragged deep inside", "relu", inputs("[[[1, 2], [3, 4]], [[5, 6], [7]]]"), 400,
           "bad_value", "[1][1]")
    yield "a text among numbers", "relu", inputs('[1, "2"]'), 400, "bad_value", "[1]"
    yield "a text for a tensor", "typed", inputs('"1"'), 400, "bad_value", "x"
    yield "null among numbers", "relu", inputs("[1, null]"), 400, "bad_value", "[1]"
    yield "an object among numbers", "relu", inputs("[1, {}]"), 400, "bad_value", "[1]"
    yield "a wrong spelling of NaN", "relu", inputs('["nan"]'), 400, "bad_value", "[0]"
    yield "NaN for integers", "ints", inputs('["NaN"]'), 400, None, "x"
    yield "a float for integers", "ints", inputs("[1.5]"), 400, None, "x"
    yield "a bool for integers", "ints", inputs("[true]"), 200, None, '"data": [1]'
    yield "a number for bools", "bools", inputs("[1]"), 200, None, '"data": [true]'
    yield "bools for floats", "typed", inputs("[[true, false, true]]"), 200, None, "[[1.0, 0.0, 1.0]]"
    yield "bools among numbers", "typed", inputs("[[1.5, true, 2]]"), 200, None, "[[1.5, 1.0, 2.0]]"
    yield ("another dtype, said", "typed", inputs('{"dtype": "float64", "data": [[1, 2, 3]]}'), 200,
           None, "float64")
    yield ("integers for floats are read as such", "typed", inputs("[[1, 2, 3]]"), 200, None,
           "[[1.0, 2.0, 3.0]]")
    yield "300 as uint8", "relu", inputs('{"dtype": "uint8", "data": [300]}'), 400, "bad_value", "300"
    yield "-1 as uint8", "relu", inputs('{"dtype": "uint8", "data": [-1]}'), 400, "bad_value", "-1"
    yield ("70000 as float16", "relu", inputs('{"dtype": "float16", "data": [70000]}'), 400,
           "bad_value", "70000")
    yield "the wrong rank", "typed", inputs("[1, 2, 3]"), 400, "shape_mismatch", "expected [N, 3]"
    yield "the wrong size", "typed", inputs("[[1, 2]]"), 400, "shape_mismatch", "[1, 2]"
    yield "a number for a matrix", "typed", inputs("1"), 400, "shape_mismatch", "expected [N, 3]"
    yield "null for a tensor", "typed", inputs("null"), 400, None, "x"
    yield "an unknown input", "relu", '{"inputs": {"y": 1}}', 400, "bad_input", '"y"'
    yield "an input too many", "relu", '{"inputs": {"x": 1, "y": 1}}', 400, "bad_input", '"y"'
    yield "an input too few", "add", '{"inputs": {"x": 1}}', 400, "bad_input", "y"
    yield "no inputs", "add", '{"inputs": {}}', 400, "bad_input", "x"
    yield "an empty list of inputs", "add", '{"inputs": []}', 400, "bad_input", "x"
    yield "an entry too many", "relu", '{"inputs": [1, 2]}', 400, "bad_input", "more than 1 entry"
    yield ("10,000 entries", "relu", '{"inputs": [' + ", ".join(["1"] * 10000) + "]}", 400, "bad_input",
           "more than 1 entry")
    yield ("10,000 names", "relu", '{"inputs": {' + ", ".join(f'"x{i}": 1' for i in range(10000)) + "}}", 400,
           "bad_input", '"x0"')
    yield ("by position and by name", "relu", '{"inputs": {"$args": [1], "$kwargs": {"x": 1}}}', 400,
           "bad_input", "x")
    yield "$args that is no list", "relu", '{"inputs": {"$args": 3}}', 400, None, ""
    yield "$kwargs that is no object", "relu", '{"inputs": {"$kwargs": [3]}}', 400, None, ""
    yield ("$kwargs within $kwargs", "relu", '{"inputs": {"$kwargs": {"$kwargs": {"x": 1}}}}', 400,
           "bad_input", "$kwargs")
    yield ("shapes that do not go together", "add", '{"inputs": {"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]}}',
           400, "shape_mismatch", "must match the size of tensor b (3)")


def member_rows():
    for value in ("null", "3", '"text"', "true", "1.5"):
        yield f"inputs = {value}", "relu", '{"inputs": ' + value + "}", 400, "bad_input", '"inputs"'
    yield "the body is a list", "relu", "[]", 400, "bad_input", "a run body is an object"
    yield "the body is a number", "relu", "1", 400, "bad_input", "a run body is an object"
    yield "the body is a text", "relu", '"inputs"', 400, "bad_input", "a run body is an object"
    yield "no inputs member", "relu", '{"profile": true}', 400, "bad_input", '"inputs"'
    for member, values in {"profile": ("1", '"true"', "null", "[]"), "mode": ("1", "null", '"fast"', "[]"),
                           "encoding": ("1", '"hex"', "null"), "reply": ("1", '"some"', "{}"),
                           "deadline_ms": ("0", "-1", "1.5", '"1"', "null", "1e3", "99999999999999999999"),
                           "seed": ("-1", "1.5", '"1"', "null", "1e400"),
                           "outputs": ('"relu"', "[1]", '["nope"]', "null", '[["relu"]]', '["relu,x"]',
                                       "{}")}.items():
        for value in values:
            yield (f"{member} = {value}", "relu", '{"inputs": {"x": 1}, "' + member + '": ' + value + "}",
                   400, None, f'"{member}"' if value not in ("1e400",) else "")
    yield ("outputs of 200,000 names", "relu",
           '{"inputs": {"x": 1}, "outputs": [' + ", ".join(['"relu"'] * 90000) + "]}", (200, 413), None, "")
    yield ("an unknown member of the body", "relu", '{"inputs": {"x": 1}, "Profile": true}', 400,
           "unknown_member", '"Profile"')


def npy(header, data=b"", version=b"\x01\x00", length=None):
    text = header.encode("latin-1")
    return b"\x93NUMPY" + version + (len(text) if length is None else length).to_bytes(
        2 if version[0] == 1 else 4, "little") + text + data


def npy_rows():
    good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"
    eight = bytes(8)
    yield "npy cut in its magic", "relu", b"\x93NUMP", 415, "wrong_file", "neither JSON nor an array file"
    yield "npy cut behind its magic", "relu", b"\x93NUMPY", (400, 415), None, ".npy"
    yield "npy of version 9", "relu", npy(good, eight, b"\x09\x00"), 422, None, "version 9"
    yield ("npy whose header is longer than the file", "relu", npy(good, b"", length=60000), 400,
           "malformed", "header")
    yield "npy whose header is cut", "relu", npy("{'descr': '<f4'"), (400, 415), None, ""
    yield ("npy with a header of 1 GB", "relu", npy(good, eight, b"\x02\x00", length=1 << 30), 413,
           "too_large", "header")
    yield "npy with one byte too few", "relu", npy(good, bytes(7)), 400, "malformed", "7 bytes"
    yield "npy with one byte too many", "relu", npy(good, bytes(9)), 400, "malformed", "9 bytes"
    yield "npy of objects", "relu", npy(good.replace("<f4", "|O"), eight), 422, None, "pickle"
    yield "npy of texts", "relu", npy(good.replace("<f4", "<U4"), eight), 422, None, "<U4"
    yield ("npy of a structure", "relu",
           npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }\n", eight), 422, None,
           "structured")
    yield ("npy with a shape that wraps", "relu",
           npy(good.replace("(2,)", "(4611686018427387905, 4)"), eight), (400, 413), None, "")
    yield ("npy with a size of 30 digits", "relu", npy(good.replace("(2,)", "(" + "9" * 30 + ",)"), eight),
           400, "malformed", "shape")
    yield ("npy with a negative size", "relu", npy(good.replace("(2,)", "(-2,)"), eight), 400,
           "malformed", "shape")
    yield ("npy of rank 9", "relu", npy(good.replace("(2,)", "(1, 1, 1, 1, 1, 1, 1, 1, 2)"), eight), 413,
           "too_large", "8 dimensions")
    yield ("npy with code in its header", "relu", npy(good.replace("False", "__import__('os')"), eight), 400,
           "malformed", "fortran_order")
    yield ("npy with a key twice", "relu",
           npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", eight), 400,
           "malformed", "key")
    yield ("npy without a shape", "relu", npy("{'descr': '<f4', 'fortran_order': False}\n", eight), 400,
           "malformed", "shape")
    yield "npy for two inputs", "add", npy(good, eight), 400, "bad_input", "takes 2"
    yield ("npy of a bool of 2", "relu", npy(good.replace("<f4", "|b1").replace("(2,)", "(1,)"), b"\x02"),
           400, "malformed", "bool")
    yield ("npy in Fortran order",
           "relu", npy(good.replace("False", "True").replace("(2,)", "(2, 2)"),
                       b"\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40"), 200, None,
           "[[1.0, 3.0], [2.0, 4.0]]")
    yield ("npy in big-endian order", "relu",
           npy(good.replace("<f4", ">f4"), b"\x3f\x80\x00\x00\x40\x00\x00\x00"), 200, None, "[1.0, 2.0]")
