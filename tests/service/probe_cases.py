# SPDX-License-Identifier: Apache-2.0
"""The probes of probes.py: bytes, what the RFCs want, what fxserve gives. `GET /v1/graphs` behind a
body is the request somebody tries to smuggle; the routes asked are such that a sound framing gives
200 or 404, never 400."""
import collections

Probe = collections.namedtuple("Probe", "name pieces rfc statuses closed methods")
PROBES = []
HOST = b"Host: localhost\r\n"
GET = b"GET /v1/graphs HTTP/1.1\r\n" + HOST
SMUGGLED = GET + b"\r\n"
POST = b"POST /v1/graphs/m/run HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def probe(name, data, rfc, statuses, closed, methods=()):
    pieces = data if isinstance(data, list) else [data]
    PROBES.append(Probe(name, pieces, rfc, statuses if isinstance(statuses, tuple) else (statuses,),
                        closed, methods))


def refused(name, data, rfc, status=400):
    probe(name, data, rfc, status, True)


def taken(name, data, rfc, statuses, methods=()):
    probe(name, data, rfc, statuses, False, methods)


# ---- what is sound -----------------------------------------------------------------------------
taken("plain", GET + b"\r\n", "9112 3", 200)
taken("two in one piece", GET + b"\r\n" + GET + b"\r\n", "9112 9.3.2: pipelines are answered in order",
      (200, 200))
taken("a body, then another request", POST + b"Content-Length: 2\r\n\r\n{}" + SMUGGLED,
      "9112 6.2", (404, 200))
taken("in pieces", [GET[:20], GET[20:], b"\r", b"\n"], "9112 2.2", 200)
taken("chunks", CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", "9112 7.1", 404)
taken("chunk extensions", CHUNKED + b"2;a=b;c\r\n{}\r\n0\r\n\r\n",
      "9112 7.1.1: unknown extensions are ignored", 404)
taken("chunk extensions in pieces", [CHUNKED + b"2", b";", b"a=b", b";c\r\n{", b"}\r\n0;", b"x", b"\r\n\r\n"],
      "9112 7.1.1: unknown extensions are ignored", 404)
taken("many zeros in the last chunk", CHUNKED + b"2\r\n{}\r\n00000\r\n\r\n", "9112 7.1", 404)
taken("trailers", CHUNKED + b"2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n", "9112 7.1.2", 404)
taken("a length among trailers", CHUNKED + b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n" + SMUGGLED,
      "9110 6.5.1: framing fields in trailers mean nothing", (404, 200))
taken("an empty line first", b"\r\n" + GET + b"\r\n", "9112 2.2: at least one is ignored", 200)
taken("HEAD", b"HEAD /v1/graphs HTTP/1.1\r\n" + HOST + b"\r\n", "9110 9.3.2", 200, ("HEAD",))
taken("OPTIONS", b"OPTIONS /v1/graphs HTTP/1.1\r\n" + HOST + b"\r\n", "9110 9.3.7: a server may refuse", 405)
taken("TRACE", b"TRACE /v1/graphs HTTP/1.1\r\n" + HOST + b"\r\n", "9110 9.3.8: a server may refuse", 405)
taken("absolute-form", b"GET http://localhost/v1/graphs HTTP/1.1\r\n" + HOST + b"\r\n",
      "9112 3.2.2: a server must accept it", 200)
taken("absolute-form, Host of another", b"GET http://localhost/v1/graphs HTTP/1.1\r\n"
      b"Host: elsewhere.example\r\n\r\n", "9112 3.2.2: the target's host wins", 200)
taken("absolute-form of another", b"GET http://elsewhere.example/v1/graphs HTTP/1.1\r\n" + HOST + b"\r\n",
      "9110 7.4: misdirected", 421)
taken("coding in capitals", POST + b"transfer-encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
      "9112 7: names of codings have no case", 404)
taken("a tab before the value", b"GET /v1/graphs HTTP/1.1\r\nHost:\tlocalhost\r\n\r\n",
      "9112 5: optional white space", 200)
taken("bytes over 0x7f in a value", GET + b"X-Name: \xc3\xa4\r\n\r\n", "9110 5.5: obs-text", 200)
taken("NUL in the path, encoded", b"GET /v1/graphs/%00 HTTP/1.1\r\n" + HOST + b"\r\n", "ours to refuse", 400)
taken("a slash in the path, encoded", b"GET /v1/graphs%2fm HTTP/1.1\r\n" + HOST + b"\r\n",
      "3986 2.2: no separator", 404)
taken("dots in the path", b"GET /v1/graphs/../graphs HTTP/1.1\r\n" + HOST + b"\r\n",
      "ours: never normalised", 404)
taken("dots in the path, encoded", b"GET /v1/graphs/%2e%2e HTTP/1.1\r\n" + HOST + b"\r\n",
      "ours: no name", 400)

taken("absolute-form with a user", b"GET http://localhost@elsewhere.example/v1/graphs HTTP/1.1\r\n" + HOST
      + b"\r\n", "9110 4.2.4: user information is refused", 400)
taken("absolute-form without a host", b"GET http:///v1/graphs HTTP/1.1\r\n" + HOST + b"\r\n",
      "9110 4.2.1: an empty host is refused", 400)
taken("two ports in the host", b"GET /v1/graphs HTTP/1.1\r\nHost: localhost:80:elsewhere.example\r\n\r\n",
      "9110 7.2: host and perhaps a port", 400)
taken("no number for a port", b"GET /v1/graphs HTTP/1.1\r\nHost: localhost:http\r\n\r\n",
      "9110 7.2: host and perhaps a port", 400)
taken("two Authorization headers", GET + b"Authorization: Bearer one\r\nAuthorization: Bearer two\r\n\r\n",
      "9110 5.3: no list, so once", 400)

# ---- lines -------------------------------------------------------------------------------------
refused("bare LF everywhere", b"GET /v1/graphs HTTP/1.1\nHost: localhost\n\n", "9112 2.2: may be taken")
refused("bare LF behind the request line", b"GET /v1/graphs HTTP/1.1\n" + HOST + b"\r\n",
        "9112 2.2: may be taken")
refused("bare LF behind a header", b"GET /v1/graphs HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n",
        "9112 2.2: may be taken")
refused("bare LF for the empty line", GET + b"\n", "9112 2.2: may be taken")
refused("bare LF first", b"\n" + GET + b"\r\n", "9112 2.2")
refused("bare CR behind a header", b"GET /v1/graphs HTTP/1.1\r\nHost: localhost\rX: 1\r\n\r\n",
        "9112 2.2: refused or replaced")
refused("CR in a value", GET + b"X: a\rContent-Length: 5\r\n\r\n" + SMUGGLED, "9110 5.5")
refused("NUL in a value", GET + b"X: a\0b\r\n\r\n", "9110 5.5")
refused("a control character in a value", GET + b"X: a\x01b\r\n\r\n", "9110 5.5: may be taken")
refused("a control character in a name", GET + b"X\x01: a\r\n\r\n", "9110 5.6.2")
refused("a folded value", GET + b"X: a\r\n b\r\n\r\n", "9112 5.2: refused or replaced")
refused("a folded length", POST + b"Content-Length:\r\n 5\r\n\r\n" + SMUGGLED, "9112 5.2")
refused("the first header is folded", b"GET /v1/graphs HTTP/1.1\r\n " + HOST + b"\r\n", "9112 2.2")
refused("a blank before the colon", b"GET /v1/graphs HTTP/1.1\r\nHost : localhost\r\n\r\n", "9112 5.1: 400")
refused("a blank in a name", GET + b"X Y: a\r\n\r\n", "9112 5.1")
refused("no name", GET + b": a\r\n\r\n", "9112 5")
refused("no colon", GET + b"nothing\r\n\r\n", "9112 5")

# ---- request line ------------------------------------------------------------------------------
refused("two blanks", b"GET  /v1/graphs HTTP/1.1\r\n" + HOST + b"\r\n", "9112 3")
refused("a tab instead of a blank", b"GET\t/v1/graphs HTTP/1.1\r\n" + HOST + b"\r\n", "9112 3")
refused("a blank in the target", b"GET /v1/gra phs HTTP/1.1\r\n" + HOST + b"\r\n", "9112 3.2: 400")
refused("a blank behind the version", b"GET /v1/graphs HTTP/1.1 \r\n" + HOST + b"\r\n", "9112 3")
refused("NUL in the target", b"GET /v1/gra\0phs HTTP/1.1\r\n" + HOST + b"\r\n", "9112 3.2")
refused("a byte over 0x7f in the target", b"GET /v1/gr\xc3\xa4phs HTTP/1.1\r\n" + HOST + b"\r\n", "3986 2")
refused("HTTP/9.9", b"GET /v1/graphs HTTP/9.9\r\n" + HOST + b"\r\n", "9110 15.6.6: 505 or 400")
refused("http/1.1", b"GET /v1/graphs http/1.1\r\n" + HOST + b"\r\n", "9112 2.3")
refused("no version", b"GET /v1/graphs\r\n" + HOST + b"\r\n", "9112 3")
refused("preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "9113 3.4")
refused("a TLS greeting", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "no HTTP at all")
refused("a target of 40,000 bytes", b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        "9110 15.5.15", 414)
refused("CONNECT", b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n",
        "9110 9.3.6: no proxy", 405)

# ---- hosts -------------------------------------------------------------------------------------
refused("no Host", b"GET /v1/graphs HTTP/1.1\r\n\r\n", "9112 3.2: 400")
refused("no Host, HTTP/1.0", b"GET /v1/graphs HTTP/1.0\r\n\r\n",
        "may be taken; it would go around the check of Host", 421)
probe("a probe without Host, HTTP/1.0", b"GET /readyz HTTP/1.0\r\n\r\n",
      "9112 3.2: HTTP/1.0 may leave it out", 200, True)
refused("two Hosts, HTTP/1.0", b"GET /readyz HTTP/1.0\r\n" + HOST + HOST + b"\r\n", "9112 3.2: 400")
refused("two Hosts", GET + b"Host: elsewhere\r\n\r\n", "9112 3.2: 400")
refused("two equal Hosts", GET + HOST + b"\r\n", "9112 3.2: 400")
refused("a Host that is a URI", b"GET /v1/graphs HTTP/1.1\r\nHost: http://localhost/\r\n\r\n",
        "9112 3.2: 400")
refused("a list of Hosts", b"GET /v1/graphs HTTP/1.1\r\nHost: localhost, elsewhere\r\n\r\n", "9112 3.2: 400")
refused("a Host with a user", b"GET /v1/graphs HTTP/1.1\r\nHost: a@localhost\r\n\r\n", "9110 4.2.4")

# ---- lengths -----------------------------------------------------------------------------------
refused("length, then chunked", POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        + SMUGGLED, "9112 6.3: an attack")
refused("chunked, then length", POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
        + SMUGGLED, "9112 6.3: an attack")
refused("two lengths", POST + b"Content-Length: 2\r\nContent-Length: 47\r\n\r\n{}" + SMUGGLED,
        "9112 6.3: 400")
refused("two equal lengths", POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "9112 6.3: may be taken")
refused("a list of lengths", POST + b"Content-Length: 2, 2\r\n\r\n{}", "9112 6.3: may be taken")
refused("length +2", POST + b"Content-Length: +2\r\n\r\n{}", "9110 8.6")
refused("length -1", POST + b"Content-Length: -1\r\n\r\n{}", "9110 8.6")
refused("length 0x2", POST + b"Content-Length: 0x2\r\n\r\n{}", "9110 8.6")
refused("length 2 2", POST + b"Content-Length: 2 2\r\n\r\n{}", "9110 8.6")
refused("no digits", POST + b"Content-Length: \r\n\r\n{}", "9110 8.6")
refused("length of 2^63", POST + b"Content-Length: 9223372036854775808\r\n\r\n{}", "9110 15.5.14", 413)
refused("length of 2^64", POST + b"Content-Length: 18446744073709551616\r\n\r\n{}", "9110 15.5.14", 413)
refused("length of 2^64 + 2", POST + b"Content-Length: 18446744073709551618\r\n\r\n{}" + SMUGGLED,
        "9110 15.5.14", 413)

# ---- codings -----------------------------------------------------------------------------------
refused("xchunked", POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED, "9112 6.1: 501 or 400")
refused("identity", POST + b"Transfer-Encoding: identity\r\n\r\n", "9112 7: no such coding any more")
refused("gzip, chunked", POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "9112 6.1: 501 or 400")
refused("chunked twice", POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "9112 7: not twice")
refused("two headers of chunked", POST
        + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "9112 7: not twice")
refused("chunked behind a control character",
        POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED, "9110 5.5")
refused("a blank before the colon of the coding",
        POST + b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED, "9112 5.1")
refused("chunked, HTTP/1.0", POST.replace(b"1.1", b"1.0")
        + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "9112 6.1: faulty framing")

# ---- chunks ------------------------------------------------------------------------------------
refused("chunk size 0x2", CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n", "9112 7.1")
refused("chunk size -1", CHUNKED + b"-1\r\n{}\r\n0\r\n\r\n", "9112 7.1")
refused("chunk size +2", CHUNKED + b"+2\r\n{}\r\n0\r\n\r\n", "9112 7.1")
refused("a blank behind the chunk size", CHUNKED + b"2 \r\n{}\r\n0\r\n\r\n", "9112 7.1")
refused("chunk size of 2^64 + 2", CHUNKED + b"10000000000000002\r\n{}\r\n0\r\n\r\n" + SMUGGLED,
        "9112 7.1: no overflow")
refused("no CR LF behind a chunk", CHUNKED + b"2\r\n{}0\r\n\r\n", "9112 7.1")
refused("LF behind a chunk size", CHUNKED + b"2\n{}\r\n0\r\n\r\n", "9112 7.1")
refused("LF behind a chunk", CHUNKED + b"2\r\n{}\n0\r\n\r\n", "9112 7.1")
refused("LF in an extension", CHUNKED + b"2;\n{}\r\n0\r\n\r\n" + SMUGGLED, "9112 7.1.1")
refused("LF behind the last chunk", CHUNKED + b"2\r\n{}\r\n0\n\r\n", "9112 7.1")
refused("a trailer without a colon", CHUNKED + b"2\r\n{}\r\n0\r\nnothing\r\n\r\n", "9112 7.1.2")
refused("a head in pieces, LF in the second", [GET, b"X: 1\n\r\n"], "9112 2.2: may be taken")
refused("chunks in pieces, LF in the second", [CHUNKED + b"2\r\n{}\r\n", b"0\n\r\n"], "9112 7.1")
refused("chunks in pieces, no size in the second", [CHUNKED, b"zz\r\n"], "9112 7.1")

# ---- sizes -------------------------------------------------------------------------------------
refused("a header of 40,000 bytes", GET + b"X: " + b"a" * 40000 + b"\r\n\r\n", "6585 5", 431)
refused("2,000 headers", GET + b"X: a\r\n" * 2000 + b"\r\n", "6585 5", 431)
taken("a target of 4,096 bytes", b"GET /" + b"a" * 4095 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
      "as large as we take", 400)
refused("a target of 4,097 bytes", b"GET /" + b"a" * 4096 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        "one more", 414)
taken("a head of 16,384 bytes", GET + b"X: " + b"a" * (16384 - len(GET) - 7) + b"\r\n\r\n",
      "as large as we take", 200)
refused("a head of 16,385 bytes", GET + b"X: " + b"a" * (16385 - len(GET) - 7) + b"\r\n\r\n", "one more", 431)
taken("128 headers", GET + b"X: a\r\n" * 127 + b"\r\n", "as many as we take", 200)
refused("129 headers", GET + b"X: a\r\n" * 128 + b"\r\n", "one more", 431)
probe("sound, then refused", GET + b"\r\n" + b"GET /v1/graphs HTTP/1.1\nHost: localhost\n\n" + SMUGGLED,
      "the first is answered", (200, 400), True)
probe("HTTP/1.0 is closed", b"GET /v1/graphs HTTP/1.0\r\n" + HOST + b"\r\n", "9112 9.3", 200, True)
probe("Connection: close", GET + b"Connection: close\r\n\r\n" + SMUGGLED,
      "9112 9.6: what follows is not answered", 200, True)
