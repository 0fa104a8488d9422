// SPDX-License-Identifier: Apache-2.0
// `fxserve health [URL]`: a health check for images that have no other HTTP client.
#pragma once

// 0: the reply was 200; 1: it was not, or there was none; 2: the command line.
int command_health(int argc, char **argv);
