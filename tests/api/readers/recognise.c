// SPDX-License-Identifier: Apache-2.0
#include "tests/api/formats/zip_maker.h"
#include "api/readers/recognise.h"

#define BYTES(text)                                                                                          \
        (ByteSpan)                                                                                           \
        {                                                                                                    \
                (const uint8_t *)(text), sizeof(text) - 1                                                    \
        }
#define SAFETENSORS "\x3b\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}     x"

static const struct {
        const char *what;
        ByteSpan bytes;
        Status status;
        const char *word, *cure;
} files[] = {
        { "an empty body", BYTES(""), STATUS_MALFORMED, "empty", "curl -T" },
        { "safetensors", BYTES(SAFETENSORS), STATUS_WRONG_FILE, "safetensors", "-F weights=" },
        { "npy", BYTES("\x93NUMPY\x01\0v\0{"), STATUS_WRONG_FILE, ".npy", "/run" },
        { "old pickle", BYTES("\x80\x02}q\0."), STATUS_WRONG_FILE, "pickle", "torch.export.save" },
        { "newer pickle", BYTES("\x80\x04\x95\x10"), STATUS_WRONG_FILE, "pickle", "torch.export.save" },
        { "onnx",
          BYTES("\x08\x08\x12\x07pytorch\x1a\x05"
                "1.0.0:"),
          STATUS_WRONG_FILE, "ONNX", "torch.export.save" },
        { "onnx without producer", BYTES("\x08\x09:\xff\x01\x0a\x20\x0a\x01x\x12\x01y\x1a\x04n"),
          STATUS_WRONG_FILE, "ONNX", "torch.export.save" },
        { "git-lfs", BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n"),
          STATUS_WRONG_FILE, "git-LFS", "git lfs pull" },
        { "gzip", BYTES("\x1f\x8b\x08\0\0\0\0\0"), STATUS_WRONG_FILE, "gzip", "Content-Encoding" },
        { "zstd", BYTES("\x28\xb5\x2f\xfd\0\0\0\0"), STATUS_WRONG_FILE, "compressed", "unpack" },
        { "html", BYTES("\n<!DOCTYPE html><html>"), STATUS_WRONG_FILE, "web page", "login" },
        { "html in capitals", BYTES("<HTML><BODY>"), STATUS_WRONG_FILE, "web page", "login" },
        { "hdf5", BYTES("\x89HDF\r\n\x1a\n"), STATUS_WRONG_FILE, "HDF5", "torch.export.save" },
        { "elf",
          BYTES("\x7f"
                "ELF\x02\x01"),
          STATUS_WRONG_FILE, "compiled", "torch.export.save" },
        { "python", BYTES("import torch\nmodel = torch.nn.Linear(1, 1)\n"), STATUS_WRONG_FILE,
          "no model file", "torch.export.save" },
        { "multipart", BYTES("--x\r\nContent-Disposition: form-data; name=\"graph\"\r\n\r\n"),
          STATUS_WRONG_FILE, "multipart", "curl -F" },
        { "form", BYTES("a=1&b=2"), STATUS_WRONG_FILE, "neither", "torch.export.save" },
        { "one byte", BYTES("P"), STATUS_WRONG_FILE, "neither", "curl -T" },
        { "cut archive", BYTES("PK\x03\x04\x00\x00\r\n\x08\x08"), STATUS_MALFORMED, "too few", "" },
        { "archive through curl -d",
          BYTES("PK\x03\x04"
                "data without any line end or zero byte"),
          STATUS_WRONG_FILE, "curl -d", "--data-binary" },
};

Test(recognise, names_wrong_files_with_their_cure)
{
        for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
                FileKind kind;
                Status status = recognise_graph(files[i].bytes, &kind);
                cr_expect_eq(status, files[i].status, "%s gives %s", files[i].what, status_code(status));
                cr_expect(strstr(failure_current()->message, files[i].word) != NULL, "%s: %s", files[i].what,
                          failure_current()->message);
                cr_expect(strstr(failure_current()->message, files[i].cure) != NULL, "%s: %s", files[i].what,
                          failure_current()->message);
        }
}

static Status recognise_members(const char *const *names, FileKind *out_kind)
{
        ZipMember members[ZIP_MAKER_MEMBERS];
        size_t n = 0;
        for (; names[n] != NULL; n++)
                members[n] = (ZipMember){ .name = names[n], .content = "{}\n", .n = 3 };
        Text bytes = { 0 };
        ZipPlaces places;
        make_zip(members, n, true, &bytes, &places);
        Status status = recognise_graph(span_of(&bytes), out_kind);
        text_deinit(&bytes);
        return status;
}

Test(recognise, tells_archives_apart_by_their_members)
{
        static const struct {
                const char *names[6];
                Status status;
                const char *word;
        } cases[] = {
                { { "m/data/weights/weight_0", "m/models/model.json", "m/archive_format" }, STATUS_OK, "" },
                { { "models/model.json" }, STATUS_OK, "" },
                { { "serialized_exported_program.json", "serialized_state_dict.pt", "version" },
                  STATUS_OK,
                  "" }, // the reader names its cure
                { { "archive/data.pkl", "archive/byteorder", "archive/data/0", "archive/version" },
                  STATUS_WRONG_FILE,
                  "state_dict" },
                { { "m/data.pkl", "m/code/__torch__.py", "m/constants.pkl", "m/version" },
                  STATUS_WRONG_FILE,
                  "TorchScript" },
                { { "m/data/aotinductor/model/c1.so", "m/archive_format" },
                  STATUS_WRONG_FILE,
                  "AOTInductor" },
                { { "data/aotinductor/model/c1.cpp", "version" }, STATUS_WRONG_FILE, "AOTInductor" },
                { { "MAR-INF/MANIFEST.json", "model.pt", "handler.py" }, STATUS_WRONG_FILE, ".mar" },
                { { "x.npy", "y.npy" }, STATUS_WRONG_FILE, ".npz" },
                { { "word/document.xml", "_rels/.rels" }, STATUS_WRONG_FILE, "without models" },
                { { NULL }, STATUS_WRONG_FILE, "without models" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                FileKind kind = FILE_OTHER;
                Status status = recognise_members(cases[i].names, &kind);
                expect_failure(cases[i].names[0] == NULL ? "nothing" : cases[i].names[0], status,
                               cases[i].status, cases[i].word);
                cr_expect_eq(kind, cases[i].status == STATUS_OK ? FILE_PT2 : FILE_OTHER);
        }
}

Test(recognise, takes_json_by_its_first_character)
{
        FileKind kind = FILE_OTHER;
        cr_expect_eq(recognise_graph(BYTES(" \n{\"format\": \"fx/1\"}"), &kind), STATUS_OK);
        cr_expect_eq(kind, FILE_JSON);
        cr_expect_eq(recognise_kind(BYTES("\xef\xbb\xbf{}")), FILE_JSON);
        cr_expect_eq(recognise_kind(BYTES("[1]")), FILE_JSON);
        cr_expect_eq(recognise_kind(BYTES(SAFETENSORS)), FILE_SAFETENSORS);
        cr_expect_eq(recognise_kind(BYTES("PK\x03\x04")), FILE_PT2);
        cr_expect_eq(recognise_kind(BYTES("")), FILE_OTHER);
}

Test(recognise, sees_that_a_large_archive_lost_its_line_ends)
{
        static char content[4096];
        for (size_t i = 0; i < sizeof(content); i++)
                content[i] = (char)(i % 251);
        const ZipMember member = { .name = "m/models/model.json", .content = content, .n = sizeof(content) };
        Text bytes = { 0 };
        ZipPlaces places;
        FileKind kind;
        make_zip(&member, 1, true, &bytes, &places);
        size_t n = 0;
        for (size_t i = 0; i < bytes.n; i++) {
                if (bytes.data[i] != '\n' && bytes.data[i] != '\r')
                        bytes.data[n++] = bytes.data[i];
        }
        bytes.n = n;
        expect_failure("stripped", recognise_graph(span_of(&bytes), &kind), STATUS_WRONG_FILE,
                       "--data-binary");
        text_deinit(&bytes);
}
