import Dispatch
import Glibc
import PrismBase
import Testing

@Suite("Programs that are started") struct ChildStartTests {
  @Test(
    "no signal is blocked in a program, though the thread that starts it has blocked all",
    arguments: [SIGTERM, SIGINT, SIGHUP, SIGALRM, SIGUSR1], [SIGPIPE, nil])
  func signals(number: Int32, heeding: Int32?) throws {
    let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
    defer { close(nothing) }
    // As the threads of Dispatch have it.
    let status = try DispatchQueue(label: "prism.child").sync {
      var (all, before) = (sigset_t(), sigset_t())
      sigfillset(&all)
      pthread_sigmask(SIG_SETMASK, &all, &before)
      defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
      let process = try ChildStart.start(
        ["/bin/sh", "-c", "kill -\(number) $$; exit 7"], input: nothing, output: nothing, error: nothing,
        heeding: heeding)
      return ChildOutput.status(of: process)
    }
    #expect(status & 0x7F == number)
  }
}
