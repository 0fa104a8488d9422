# SPDX-License-Identifier: Apache-2.0
"""Malformed rules that observe, and malformed parts of runs, in the form of malformed_requests.py.
The graph relu has the nodes x, relu, output; add has x, y, add, output."""

X = '"inputs": {"x": [1.5]}'


def rule(members, status=400, code="bad_value", word=""):
    return '{' + X + ', "overrides": [{"match": {"name": "relu"}, ' + members + '}]}', status, code, word


def part(members, status=400, code="bad_value", word=""):
    return '{' + X + ', ' + members + '}', status, code, word


def rows():
    for name, row in {**observed(), **halted(), **partial(), **leaves(), **kept()}.items():
        body, status, code, word = row
        yield f"observing: {name}", "relu", body, status, code, word


def observed():
    lists = '"observe" is a list of one or more of "call", "stats", "tensor"'
    return {
        "observe as a text": rule('"observe": "stats"', word=lists),
        "observe as an object": rule('"observe": {"stats": true}', word=lists),
        "observe nothing": rule('"observe": []', word=lists),
        "observe null": rule('"observe": null', word=lists),
        "observe an unknown word": rule('"observe": ["stats", "median"]', word=lists),
        "observe a number": rule('"observe": [1]', word=lists),
        "observe a nested list": rule('"observe": [["stats"]]', word=lists),
        "observe twice": rule('"observe": ["stats"], "observe": ["call"]', code="malformed", word="observe"),
        "observe the same twice": rule('"observe": ["stats", "stats"]', 200, None, '"mean": 1.5'),
        "observe an empty text": rule('"observe": [""]', word=lists),
        "observe 10,000 words": rule('"observe": [' + ", ".join(['"stats"'] * 10000) + "]", 200, None,
                                     '"mean": 1.5'),
        "an unknown form": rule('"observe": ["stats"], "form": "yaml"', word='"form"'),
        "a form that is no text": rule('"observe": ["stats"], "form": ["text"]', word='"form"'),
        "a form without observe": rule('"form": "text"', 200, None, '"observed": []'),
        "an unknown member beside observe": rule('"observe": ["stats"], "halt": ["nan"]',
                                                 code="unknown_member", word="halt_on"),
        "observe what nothing matches": ('{' + X + ', "overrides": [{"match": {"name": "y"}, "observe": '
                                         '["stats"]}]}', 400, "bad_value", "no node has name y"),
        "observe without match": ('{' + X + ', "overrides": [{"observe": ["stats"]}]}', 400, "bad_value",
                                  '"match"'),
        "observe for a bare reply": ('{"reply": "bare", ' + rule('"observe": ["stats"]')[0][1:], 406,
                                     "not_acceptable", "full JSON reply"),
        "256 rules that observe": ('{' + X + ', "overrides": [' + ", ".join(
            ['{"match": {}, "observe": ["call", "stats", "tensor"]}'] * 256) + "]}", 200, None, '"mean"'),
    }


def halted():
    lists = '"halt_on" is a list of one or more of "nan", "inf"'
    return {
        "halt_on as a text": rule('"halt_on": "nan"', word=lists),
        "halt on nothing": rule('"halt_on": []', word=lists),
        "halt on an unknown word": rule('"halt_on": ["NaN"]', word=lists),
        "halt on true": rule('"halt_on": [true]', word=lists),
        "halt_on null": rule('"halt_on": null', word=lists),
        "halt_on of nothing bad": rule('"halt_on": ["nan", "inf"]', 200, None, "1.5"),
    }


def partial():
    nodes = "has no such node"
    return {
        "initial_env as a list": part('"initial_env": [1.0]', word='"initial_env"'),
        "initial_env null": part('"initial_env": null', word='"initial_env"'),
        "initial_env of nothing": part('"initial_env": {}', 200, None, "1.5"),
        "a value for no node": part('"initial_env": {"y": [1.0]}', word=nodes),
        "a value for a node without a name": part('"initial_env": {"": [1.0]}', word=nodes),
        "a value for the output": part('"initial_env": {"output": [1.0]}', word="output node"),
        "a value that is a text": part('"initial_env": {"relu": "1"}'),
        "a value that is null": part('"initial_env": {"relu": null}'),
        "a ragged value": part('"initial_env": {"relu": [[1.0], [1.0, 2.0]]}', word="expected sequence"),
        "a value with too many dimensions": part('"initial_env": {"relu": ' + "[" * 9 + "1" + "]" * 9 + "}",
                                                 word="more than 8"),
        "two values for a node": part('"initial_env": {"relu": [1.0], "relu": [2.0]}', code="malformed",
                                      word="relu"),
        "initial_env twice": part('"initial_env": {}, "initial_env": {}', code="malformed",
                                  word="initial_env"),
        "until as a list": part('"until": ["relu"]', word='"until"'),
        "until a number": part('"until": 1', word='"until"'),
        "until no node": part('"until": "y"', word=nodes),
        "until the output": part('"until": "output"', word="output node"),
        "until an earlier node than fetched": part('"until": "x", "outputs": ["relu"]', word="behind"),
        "until twice": part('"until": "x", "until": "relu"', code="malformed", word="until"),
        "a value behind the end": part('"until": "x", "initial_env": {"relu": [2.0]}', 200, None, "[1.5]"),
        "a rule for a node that is given": (rule('"retarget": "torch.neg"')[0][:-1]
                                            + ', "initial_env": {"relu": [1.0]}}', 400, "bad_value",
                                            "no node has name relu"),
    }


def leaves():
    names = "is a list of texts"
    return {
        "leaf null": part('"leaf": null', word='"leaf" is an object'),
        "leaf a list": part('"leaf": ["Block"]', word='"leaf" is an object'),
        "leaf true": part('"leaf": true', word='"leaf" is an object'),
        "leaf of nothing": part('"leaf": {}', 200, None, "1.5"),
        "leaf with another member": part('"leaf": {"names": []}', code="unknown_member", word="types, paths"),
        "leaf twice": part('"leaf": {}, "leaf": {}', code="malformed", word="leaf"),
        "types twice": part('"leaf": {"types": [], "types": []}', code="malformed", word="types"),
        "types a text": part('"leaf": {"types": "Block"}', word=names),
        "types null": part('"leaf": {"types": null}', word=names),
        "a type that is a number": part('"leaf": {"types": [1]}', word=names),
        "a type that is empty": part('"leaf": {"types": [""]}', word="no name"),
        "a path with a NUL": part('"leaf": {"paths": ["a\\u0000"]}', code="malformed", word="U+0000"),
        "paths an object": part('"leaf": {"paths": {}}', word=names),
        "a type of no module": part('"leaf": {"types": ["Block"]}', word="no such module"),
        "a path of no module": part('"leaf": {"paths": ["*"]}', word="no such module"),
        "257 types": part('"leaf": {"types": [' + ", ".join(['"t"'] * 257) + "]}", 413, "too_large",
                          "max_rules"),
        "256 types and a path": part('"leaf": {"types": [' + ", ".join(['"t"'] * 256) + '], "paths": ["p"]}',
                                     413, "too_large", "max_rules"),
        "a path of a megabyte of stars": part('"leaf": {"paths": ["' + "*" * 1000000 + '"]}', (400, 413),
                                              None, ""),
    }


def kept():
    wanted = "a value of an earlier run is"
    return {
        "keep something else": part('"keep": "relu"', word='"keep"'),
        "keep a list": part('"keep": ["relu"]', word='"keep"'),
        "mutations as a text": part('"mutations": "all"', word='"mutations"'),
        "mutations of a part of a run": part('"mutations": true, "until": "relu"', word='"mutations"'),
        "mutations without an export": part('"mutations": true', 422, "unsupported_operators",
                                            '"mutations"'),
        "keep true": part('"keep": true', word='"keep"'),
        "a value of no run": part('"initial_env": {"relu": {"run": "none", "node": "relu"}}', 404,
                                  "not_found", "none"),
        "a run without a node": part('"initial_env": {"relu": {"run": "none"}}', word=wanted),
        "a node without a run": part('"initial_env": {"relu": {"node": "relu"}}', word=wanted),
        "a run that is a number": part('"initial_env": {"relu": {"run": 1, "node": "relu"}}', word=wanted),
        "a run with more members": part('"initial_env": {"relu": {"run": "a", "node": "b", "c": 1}}',
                                        word=wanted),
        "a run's id of a megabyte": part('"initial_env": {"relu": {"run": "' + "k" * 1000000
                                         + '", "node": "b"}}', (404, 413), None, ""),
        "a kept value as an input": ('{"inputs": {"x": {"run": "a", "node": "b"}}}', 400, None, ""),
    }
