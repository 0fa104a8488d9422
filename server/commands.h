// SPDX-License-Identifier: Apache-2.0
// The commands. Each takes the arguments after its name and returns the exit code: 0, 1 (it
// failed), 2 (the command line).
#pragma once
#include "core/base/text.h"

// commands.c: without a server
int command_run(int argc, char **argv);
int command_check(int argc, char **argv);
int command_print(int argc, char **argv);
int command_ops(int argc, char **argv);

// demo.c: a server with a trained model, and requests to it
int command_demo(int argc, char **argv);

// view.c: a server with one file, and its page
int command_view(int argc, char **argv);

// remote.c: a server is asked
int command_push(int argc, char **argv);
int command_list(int argc, char **argv);
int command_show(int argc, char **argv);
int command_call(int argc, char **argv);
int command_compare(int argc, char **argv); // 0: equal; 1: different; 2: failed
int command_rm(int argc, char **argv);

// `NAME=JSON` or `NAME=@FILE.npy` becomes a member of the "inputs" object that `body` is in.
// STATUS_USAGE.
Status command_add_input(const char *text, bool first, Text *body);
