// SPDX-License-Identifier: Apache-2.0
// The commands that need no server. Each takes the arguments after its name and returns the exit code.
#pragma once

int command_run(int argc, char **argv);   // run m.pt2 --input x='[[1,2]]' [-o y.npy] [--profile]
int command_check(int argc, char **argv); // check FILE: what would not run; exit 1
int command_print(int argc, char **argv); // print FILE [--form graph|code|tabular|json]
int command_ops(int argc, char **argv);   // ops
