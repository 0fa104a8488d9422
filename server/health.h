// SPDX-License-Identifier: Apache-2.0
// `fxserve health [URL]`: asks a server how it is, for images that have no other HTTP client.
#pragma once

// 0: the reply was 200; 1: it was not, or there was none; 2: the command line.
int command_health(int argc, char **argv);
