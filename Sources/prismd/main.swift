import CArguments
import Dispatch
import Glibc
import PrismBase
import PrismLinux

prism_give_back_large_blocks()
// Before anything opens a descriptor, which libdispatch does with the first task.
StandardStreams.prepare()
let words = stride(from: 1, to: prism_argument_count(), by: 1).map { String(cString: prism_argument($0)) }
let flags = flagsOrExit(words)
// A developer may want to look into the daemon; its keys are of its folder only.
if flags.folder == nil { prism_forbid_dumps() }
let route = SignalRoute()
// A terminal that is closed says so with SIGHUP: a daemon that was started in it ends with it.
let endsWithTerminal = flags.folder != nil
let signals = SignalMonitor { route.handle($0 == .reload && endsWithTerminal ? .stop : $0) }
Task {
  await signals.start()
  exit(await runPrismd(flags, signals: route).rawValue)
}
dispatchMain()
