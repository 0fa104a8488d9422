# SPDX-License-Identifier: Apache-2.0
"""Names that should not be: rows() are uploads under names no graph may have, (name, target,
status, code). And requests that are many: pipelines and chunks."""

BAD = (400, 404, 405, 409, 414, 431)


def rows():
    for name, text in names():
        yield f"name: {name}", f"/v1/graphs/{text}", BAD, None
        yield f"name: {name}, to run", f"/v1/graphs/{text}/run", BAD, None
    for name, text in versions():
        yield f"version: {name}", f"/v1/graphs/relu/versions/{text}/run", BAD, None
    for name, text in queries():
        yield f"query: {name}", f"/v1/graphs/relu/run?{text}", 400, None


def names():
    yield "two points", ".."
    yield "two points, escaped", "%2e%2e"
    yield "two points, escaped twice", "%252e%252e"
    yield "one point", "."
    yield "a point first", ".profile"
    yield "a slash, escaped", "a%2fb"
    yield "a slash, escaped, upper case", "a%2Fb"
    yield "up and away", "%2e%2e%2f%2e%2e%2f%2e%2e%2ftmp%2fevil"
    yield "up and away, plain", "../../../../tmp/evil"
    yield "a backslash", "a%5cb"
    yield "up with backslashes", "..%5c..%5cevil"
    yield "a NUL", "a%00b"
    yield "a NUL at the end", "relu%00"
    yield "a NUL before an ending", "relu%00.pt2"
    yield "a line end", "a%0ab"
    yield "a carriage return and a header", "a%0d%0aX-Evil:%201"
    yield "a tab", "a%09b"
    yield "DEL", "a%7fb"
    yield "a blank", "a%20b"
    yield "blanks only", "%20%20"
    yield "overlong UTF-8 of a slash", "a%c0%afb"
    yield "overlong UTF-8 of a point", "%c0%ae%c0%ae"
    yield "overlong UTF-8 in three bytes", "a%e0%80%afb"
    yield "overlong UTF-8 in four bytes", "a%f0%80%80%afb"
    yield "a fullwidth slash", "a%ef%bc%8fb"
    yield "a fullwidth letter", "%ef%bd%81bc"
    yield "a combining accent", "e%cc%81"
    yield "a bidirectional mark", "a%e2%80%aeb"
    yield "a byte order mark", "%ef%bb%bfa"
    yield "half a character", "a%e2%82"
    yield "a lone continuation", "a%80b"
    yield "a surrogate", "a%ed%a0%80"
    yield "a dash first", "-rf"
    yield "two dashes first", "--help"
    yield "65 letters", "a" * 65
    yield "255 letters", "a" * 255
    yield "256 letters", "a" * 256
    yield "4,000 letters", "a" * 4000
    yield "4,096 letters", "a" * 4096
    yield "20,000 letters", "a" * 20000
    yield "4,000 escaped letters", "%61" * 1300
    yield "half an escape", "a%4"
    yield "no escape", "a%zz"
    yield "an escape of a percent sign", "%25"
    yield "a percent sign", "a%"
    yield "a plus", "a+b"
    yield "a semicolon", "a;b=c"
    yield "a colon", "c:"
    yield "an alternate stream", "a::$DATA"
    yield "a star", "*"
    yield "a question mark, escaped", "a%3fb"
    yield "a number sign, escaped", "a%23b"
    yield "quotes", "%22a%22"
    yield "an apostrophe and SQL", "a%27%20or%201=1"
    yield "angle brackets", "%3cscript%3e"
    yield "a tilde", "~root"
    yield "a dollar", "$HOME"
    yield "back quotes", "%60id%60"
    yield "a format", "%25s%25n"
    yield "braces", "%7bname%7d"
    yield "an ampersand", "a&b"
    yield "an equals sign", "a=b"
    yield "a comma", "a,b"
    yield "an at sign", "@a"
    yield "brackets", "[a]"
    yield "a caret", "a%5eb"
    yield "a pipe", "a%7cb"
    yield "nothing but an ending", ".pt2"
    yield "an id of another content", "0" * 64
    yield "nothing, twice", "/"
    yield "a slash at the end of dots", "../"


def versions():
    for text in ("0", "-1", "1.0", "1e0", "0x1", "+1", "%2b1", "01x", "1%00", "", "%20",
                 "9223372036854775808", "18446744073709551617", "4294967297", "99999999999999999999999999",
                 "latest", "..", "%2e%2e", "\u0661".encode().hex(), "1/2"):
        yield repr(text), text


def queries():
    yield "an unknown parameter", "nothing=1"
    yield "a parameter twice", "profile=1&profile=0"
    yield "a parameter twice, once escaped", "profile=1&pr%6ffile=0"
    yield "a truth that is none", "profile=maybe"
    yield "a NUL in a value", "mode=eager%00"
    yield "a bad escape", "mode=%e"
    yield "a bad escape in a key", "%zz=1"
    yield "an unknown mode", "mode=fast"
    yield "a deadline of 0", "deadline_ms=0"
    yield "a negative deadline", "deadline_ms=-5"
    yield "a deadline of 2^63", "deadline_ms=9223372036854775808"
    yield "a fraction as deadline", "deadline_ms=1.5"
    yield "a text as seed", "seed=abc"
    yield "an unknown encoding", "encoding=base65"
    yield "an unknown form", "as=xml"
    yield "a node that is not there", "outputs=nothing"
    yield "an empty node", "outputs=,"
    yield "100 parameters", "&".join(f"p{i}=1" for i in range(100))
    yield "17 known parameters", "&".join(["profile=1"] * 17)
    yield "a value of 3,000 letters", "mode=" + "e" * 3000
    yield "a line end in a value", "mode=a%0d%0ab"
    yield "brackets", "profile[]=1"
