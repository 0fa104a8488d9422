// SPDX-License-Identifier: Apache-2.0
// Tells a service manager what state the process is in (systemd, Type=notify).
#pragma once

// Sends `state` ("READY=1") to the socket named by NOTIFY_SOCKET; does nothing without one.
void notify_manager(const char *state);
