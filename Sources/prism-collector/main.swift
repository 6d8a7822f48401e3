import Dispatch
import Glibc
import PrismBase

// Before anything opens a descriptor, which libdispatch does with the first task.
StandardStreams.prepare()
Task { exit(await runCollector(Array(CommandLine.arguments.dropFirst()))) }
dispatchMain()
