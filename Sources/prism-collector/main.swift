import Dispatch
import Glibc
import PrismBase

// Before anything opens a descriptor, which libdispatch does with the first task.
StandardStreams.prepare()
// Files that it makes are the owner's only: reports are read with a token, not from the disk.
umask(0o077)
Task { exit(await runCollector(Array(CommandLine.arguments.dropFirst()))) }
dispatchMain()
