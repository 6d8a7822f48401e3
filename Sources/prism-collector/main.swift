import CArguments
import Dispatch
import Glibc
import PrismBase

prism_give_back_large_blocks()
// Before anything opens a descriptor, which libdispatch does with the first task.
StandardStreams.prepare()
// Files that it makes are the owner's only: reports are read with a token, not from the disk.
umask(0o077)
prism_forbid_dumps()
let words = stride(from: 1, to: prism_argument_count(), by: 1).map { String(cString: prism_argument($0)) }
let line = lineOrExit(words)
let notifier = ServiceNotifier.fromEnvironment()
Task { exit(printed(await runCollector(line, notifier))) }
dispatchMain()
