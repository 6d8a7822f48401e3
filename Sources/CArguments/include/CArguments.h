#pragma once

/// The words of the command line, the program's name included; without reading /proc, which a chroot or a container may
/// not have and which `CommandLine.arguments` needs.
int prism_argument_count(void);

/// One of them, from 0 on; it stays valid.
const char *_Nonnull prism_argument(int index);
