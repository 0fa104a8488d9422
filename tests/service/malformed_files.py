# SPDX-License-Identifier: Apache-2.0
"""Malformed weight files and archives: rows() are uploads, (name, body, headers, status, code,
word)."""
import io
import json
import struct
import zipfile
import zlib

from service import model_file, multipart, tensor_of, write_safetensors

LINEAR = json.dumps({"format": "fx/1", "nodes": [
    {"op": "placeholder", "name": "x", "target": "x"},
    {"op": "call_module", "name": "lin", "target": "lin", "args": ["%x"]},
    {"op": "output", "name": "output", "target": "output", "args": ["%lin"]}], "modules": {
        "lin": {"type": "torch.nn.Linear", "config": {"in_features": 2, "out_features": 1}}}}).encode()
LINEAR_WEIGHTS = write_safetensors({"lin.weight": tensor_of("float32", [[10.0, 20.0]]),
                                    "lin.bias": tensor_of("float32", [0.5])})


def linear_form(weights):
    body, content_type = multipart([("graph", LINEAR), ("weights", weights)])
    return body, [("Content-Type", content_type)]


def safetensors(header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def rows():
    for name, weights, status, code, word in weight_rows():
        body, headers = linear_form(weights)
        yield name, body, headers, status, code, word
    for name, archive, status, code, word in archive_rows():
        yield name, archive, (), status, code, word


def entry(dtype="F32", shape=(1, 2), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def weight_rows():
    bias = entry(shape=[1], begin=8, end=12)
    good = {"lin.weight": entry(), "lin.bias": bias}
    data = struct.pack("<3f", 10, 20, 0.5)
    yield "weights that are well", safetensors(good, data), (200, 201), None, '"weights_bytes": 12'
    yield "weights of no bytes", b"", 400, None, "0 bytes"
    yield "weights of 7 bytes", bytes(7), 400, "malformed", ""
    yield "a header of length 0", safetensors(b"", data), 400, "malformed", "header"
    yield "a header of length 2^63", safetensors(good, data, length=1 << 63), (400, 413), None, "header"
    yield ("a header of length 2^64 - 1", safetensors(good, data, length=(1 << 64) - 1), (400, 413),
           None, "header")
    yield "a header longer than the file", safetensors(good, data, length=10000), 400, "malformed", "header"
    yield ("a header of 11 MB", safetensors(json.dumps(good).encode() + b" " * 11000000, data), 413,
           "too_large", "header")
    yield "a header that is no JSON", safetensors(b"hello   ", data), 400, "malformed", ""
    yield "a header that is a list", safetensors(b"[]      ", data), 400, "malformed", ""
    yield ("a header with text behind its end", safetensors(json.dumps(good).encode() + b"x", data), 400,
           "malformed", "")
    yield "a header with bad UTF-8", safetensors(b'{"\xff": {}}', data), 400, "malformed", ""
    yield ("a name twice in the header",
           safetensors(b'{"lin.bias": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "lin.bias": '
                       b'{"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}', data[:8]), 400,
           "malformed", "lin.bias")
    yield ("overlapping tensors",
           safetensors({"lin.weight": entry(), "lin.bias": entry(shape=[1], begin=4, end=8)}, data[:8]), 400,
           "malformed", "lin.")
    yield ("a gap between tensors",
           safetensors({"lin.weight": entry(), "lin.bias": entry(shape=[1], begin=12, end=16)},
                       data + bytes(4)), 400, "malformed", "")
    yield ("a tensor beyond the file",
           safetensors({"lin.weight": entry(), "lin.bias": entry(shape=[1], begin=8, end=12)}, data[:10]),
           400, "malformed", "lin.bias")
    yield "bytes behind the last tensor", safetensors(good, data + b"x"), 400, "malformed", ""
    yield ("an end before the beginning",
           safetensors({"lin.weight": entry(), "lin.bias": entry(shape=[1], begin=12, end=8)}, data), 400,
           "malformed", "lin.bias")
    yield ("offsets of 2^63", safetensors({"lin.weight": entry(begin=(1 << 63) - 8, end=(1 << 63) - 1),
                                           "lin.bias": bias}, data), 400, "malformed", "lin.weight")
    yield ("negative offsets", safetensors({"lin.weight": entry(begin=-8, end=0), "lin.bias": bias}, data),
           400, "malformed", "lin.weight")
    yield ("one offset", safetensors({"lin.weight": {**entry(), "data_offsets": [0]}, "lin.bias": bias},
                                     data), 400, "malformed", "lin.weight")
    yield ("offsets that are texts", safetensors({"lin.weight": {**entry(), "data_offsets": ["0", "8"]},
                                                  "lin.bias": bias}, data), 400, "malformed", "")
    yield ("no offsets", safetensors({"lin.weight": {"dtype": "F32", "shape": [1, 2]}, "lin.bias": bias},
                                     data), 400, "malformed", "lin.weight")
    yield ("no shape", safetensors({"lin.weight": {"dtype": "F32", "data_offsets": [0, 8]}, "lin.bias": bias},
                                   data), 400, "malformed", "lin.weight")
    yield ("no dtype", safetensors({"lin.weight": {"shape": [1, 2], "data_offsets": [0, 8]},
                                    "lin.bias": bias}, data), 400, "malformed", "lin.weight")
    yield ("a dtype of another size", safetensors({"lin.weight": entry(dtype="F64"), "lin.bias": bias}, data),
           400, "malformed", "lin.weight")
    yield ("an unknown dtype of weights",
           safetensors({"lin.weight": entry(dtype="F33"), "lin.bias": bias}, data), (400, 422), None, "F33")
    yield ("a shape that wraps", safetensors({"lin.weight": entry(shape=[(1 << 62) + 1, 4]),
                                              "lin.bias": bias}, data), (400, 413), None, "lin.weight")
    yield ("a negative size of weights",
           safetensors({"lin.weight": entry(shape=[-1, -2]), "lin.bias": bias}, data), 400, "malformed", "")
    yield ("weights of rank 9", safetensors({"lin.weight": entry(shape=[1] * 8 + [2]), "lin.bias": bias},
                                            data), (400, 413, 422), None, "lin.weight")
    yield ("weights of another shape", safetensors({"lin.weight": entry(shape=[2, 1]), "lin.bias": bias},
                                                   data), (400, 422), None, "lin.weight")
    yield ("weights of integers", safetensors({"lin.weight": entry(dtype="I32"), "lin.bias": bias}, data),
           (200, 201, 400, 422), None, "")
    yield ("weights without the bias", safetensors({"lin.weight": entry()}, data[:8]), 422,
           "missing_state", "lin.bias")
    yield ("weights that nobody wants", safetensors({**good, "other": entry(shape=[1], begin=12, end=16)},
                                                    data + bytes(4)), (200, 201, 400, 422), None, "")
    yield ("unaligned weights", safetensors(
        {"a": entry(dtype="U8", shape=[1], begin=0, end=1), "lin.weight": entry(begin=1, end=9),
         "lin.bias": entry(shape=[1], begin=9, end=13)}, b"x" + data), (200, 201, 400, 422), None, "")
    yield ("metadata that are no texts", safetensors({"__metadata__": {"a": 1}, **good}, data),
           (400, 200, 201), None, "")
    yield ("100,001 tensors", safetensors({f"w{i}": entry(dtype="U8", shape=[0], begin=0, end=0)
                                           for i in range(100001)}, b""), 413, "too_large", "100")
    yield ("a header nested 1,000 deep", safetensors(b'{"a": ' + b"[" * 1000 + b"]" * 1000 + b"}", b""),
           (400, 413), None, "")
    yield "a pickle as weights", b"\x80\x02}q\x00.", (400, 415), None, ""


# ---- archives ----------------------------------------------------------------------------------
def members(name="dev_relu_neg_abs.pt2"):
    """[(path, bytes)] of a real archive."""
    with zipfile.ZipFile(io.BytesIO(model_file(name))) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def archive_of(rows, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in rows:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return buffer.getvalue()


def changed(path_end, change):
    return archive_of([(name, change(content) if name.endswith(path_end) else content)
                       for name, content in members()])


def patched(blob, signature, offset, value):
    """`value` written `offset` bytes behind the first `signature`; of the archive's own directory,
    not that of an archive within."""
    at = blob.index(signature, 0 if signature == b"PK\x03\x04" else directory_of(blob)) + offset
    return blob[:at] + value + blob[at + len(value):]


def wide_einsum(content):
    """The first node multiplies five matrices of ten dimensions together, which only a walk with
    shapes can tell."""
    document = json.loads(content)
    node = document["graph_module"]["graph"]["nodes"][0]
    node["target"] = "torch.ops.aten.einsum.default"
    node["inputs"] = [{"name": "equation", "arg": {"as_string": "ab,cd,ef,gh,ij->ab"}, "kind": 1},
                      {"name": "tensors", "arg": {"as_tensors": [{"name": "x"}] * 5}, "kind": 1}]
    return json.dumps(document).encode()


def archive_rows():
    good = archive_of(members())
    local, central, end = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
    root = members()[0][0].split("/")[0]
    yield "an archive that is well", good, (200, 201), None, '"format": "pt2"'
    yield ("an archive deflated", archive_of(members(), zipfile.ZIP_DEFLATED), (200, 201), None,
           '"format": "pt2"')
    yield "an archive of nothing", archive_of([]), 415, "wrong_file", "zip"
    yield "an archive of one text", archive_of([("a.txt", b"hello")]), 415, "wrong_file", "zip archive"
    yield "an archive without its end", good[:-22], 400, "malformed", ""
    yield "an archive with text before it", b"hello" + good, (200, 201, 400, 415), None, ""
    yield "an archive with text behind it", good + b"hello", (200, 201, 400), None, ""
    yield "a member above the folder", archive_of(members() + [("../evil", b"x")]), 400, "malformed", "evil"
    yield ("a member with an absolute name", archive_of(members() + [("/etc/evil", b"x")]), 400,
           "malformed", "evil")
    yield ("a member with a backslash", archive_of(members() + [(root + "\\evil", b"x")]), 400,
           "malformed", "evil")
    yield ("a member twice", archive_of([("dup/a", b"x"), ("dup/b", b"x")]).replace(b"dup/b", b"dup/a"), 400,
           "malformed", "dup/a")
    yield ("a member with a NUL in its name", good.replace(b"archive_format", b"archive\0format"),
           400, None, "")
    yield ("an encrypted member", patched(patched(good, local, 6, b"\x01\x00"), central, 8, b"\x01\x00"), 400,
           "malformed", "encrypted")
    yield ("an unknown compression", patched(patched(good, local, 8, b"\x63\x00"), central, 10, b"\x63\x00"),
           400, None, "")
    yield "a wrong checksum", patched(good, central, 16, b"\0\0\0\0"), 400, "malformed", ""
    yield ("a size that lies", patched(good, central, 20, struct.pack("<II", 1 << 30, 1 << 30)), 400,
           "malformed", "")
    yield ("a member beyond the end", patched(good, central, 42, struct.pack("<I", 0xfffffff0)), 400,
           "malformed", "")
    yield "members that overlap", overlapping(good), 400, "malformed", ""
    yield ("names that disagree", good.replace(root.encode() + b"/archive_format",
                                               root.encode() + b"/archive_fxrmat", 1), 400, "malformed", "")
    yield "65,535 members said", patched(good, end, 8, b"\xff\xff\xff\xff"), 400, "malformed", ""
    yield ("a directory beyond the file", patched(good, end, 16, struct.pack("<I", 0x7fffffff)), 400,
           "malformed", "")
    yield ("a bomb of a thousandfold", archive_of(members() + [(root + "/data/bomb", bytes(50000000))],
                                                  zipfile.ZIP_DEFLATED), (400, 413), None, "")
    yield ("a directory that says 4 GB where the bytes say none",
           patched(good, central, 24, b"\xff\xff\xff\xff"), 400, "malformed", "")
    yield "a format of another name", changed("archive_format", lambda _: b"pt3"), (400, 415), None, ""
    yield ("an archive version of 99", changed("archive_version", lambda _: b"99"),
           (200, 201, 400, 415, 422), None, "")
    yield "a byte order of big", changed("byteorder", lambda _: b"big"), (400, 415, 422), None, "big"
    yield "a model that is no JSON", changed("models/model.json", lambda _: b"hello"), 400, "malformed", ""
    yield "a model that is a list", changed("models/model.json", lambda _: b"[]"), 400, "malformed", ""
    yield "a model that is empty", changed("models/model.json", lambda _: b"{}"), 400, "malformed", ""
    yield ("a model that no run could serve", changed("models/model.json", wide_einsum), 422,
           "unsupported_operators", "aten.einsum.default (relu): einsum() over 10")
    yield ("a model nested 1,000 deep", changed("models/model.json", lambda _: b"[" * 1000 + b"]" * 1000),
           (400, 413), None, "")
    yield ("a model of 17 MB", changed("models/model.json", lambda content: content + b" " * (17 << 20)), 413,
           "too_large", "")
    yield ("a schema of another major version", changed("models/model.json", lambda content: content.replace(
        b'"major": 8', b'"major": 99').replace(b'"major":8', b'"major":99')), (400, 415, 422), None, "")
    yield ("a model whose node is called by another name",
           changed("models/model.json", lambda content: content.replace(
               b'"name": "relu"', b'"name": "nothing"').replace(b'"name":"relu"', b'"name":"nothing"')),
           (400, 200, 201, 422), None, "")
    yield ("an unknown operator in a model", changed("models/model.json", lambda content: content.replace(
        b"aten.relu.default", b"aten.rleu.default")), 422, "unsupported_operators", "aten.rleu.default")
    yield "a weights file that is missing", without_weights(), (400, 422), None, ""
    yield "a weights file that is short", short_weights(), 400, None, ""
    yield "100,000 members", many_members(100000), (400, 413, 415), None, ""
    yield "250,000 members", many_members(250000), (400, 413), None, ""


def directory_of(blob):
    return struct.unpack_from("<I", blob, blob.rindex(b"PK\x05\x06") + 16)[0]


def overlapping(blob):
    """The second member's directory entry points at the first one's bytes."""
    first = directory_of(blob)
    second = blob.index(b"PK\x01\x02", first + 4)
    return blob[:second + 42] + blob[first + 42:first + 46] + blob[second + 46:]


def without_weights():
    return archive_of([row for row in members("dev_linear.pt2")
                       if not row[0].split("/")[-1].startswith("weight_")])


def short_weights():
    return archive_of([(name, content[:10] if name.split("/")[-1].startswith("weight_") else content)
                       for name, content in members("dev_linear.pt2")])


def many_members(n):
    """An archive of empty members, written here because zipfile takes seconds for it."""
    locals_, centrals, offset = [], [], 0
    crc = struct.pack("<III", zlib.crc32(b""), 0, 0)
    for i in range(n):
        name = b"m/%06d" % i
        locals_.append(b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 0, 0, 33) + crc
                       + struct.pack("<HH", len(name), 0) + name)
        centrals.append(b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 0, 0, 33) + crc
                        + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, offset) + name)
        offset += len(locals_[-1])
    directory = b"".join(centrals)
    big = struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, n, n, len(directory), offset)
    tail = b"PK\x06\x06" + big + b"PK\x06\x07" + struct.pack("<IQI", 0, offset + len(directory), 1)
    return (b"".join(locals_) + directory + tail + b"PK\x05\x06"
            + struct.pack("<HHHHIIH", 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, 0))
