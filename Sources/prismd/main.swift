import Dispatch
import Glibc
import PrismBase
import PrismLinux

// Before anything opens a descriptor, which libdispatch does with the first task.
StandardStreams.prepare()
let route = SignalRoute()
let signals = SignalMonitor { route.handle($0) }
Task {
  await signals.start()
  exit(await runPrismd(Array(CommandLine.arguments.dropFirst()), signals: route))
}
dispatchMain()
