import Foundation
import PrismBase
import PrismConfig
import PrismEngine
import PrismLinux
import Testing

@Suite("The network as the kernel reports it", .serialized, .timeLimit(.minutes(2)))
struct NetlinkMonitorTests {
  private static let childVariable = "PRISM_TEST_NETWORK_NAMESPACE"
  private static let log = Logger(level: .error)

  /// A network namespace belongs to a thread, and the monitor has several. So this very program runs the steps below
  /// once more, as a child in a namespace of its own.
  @Test("links and routes that come and go are followed, in a network namespace")
  func namespace() async throws {
    guard geteuid() == 0, try await ChildProcess.run(["unshare", "--net", "ip", "link"]).status == 0 else {
      Issue.record("SKIPPED: network namespaces need root, unshare and ip (iproute2)", severity: .warning)
      return
    }
    let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let (output, status) = try await ChildProcess.run([
      "unshare", "--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\"",  // Foundation needs its loopback
      "env", "\(Self.childVariable)=1", program, "--testing-library", "swift-testing", "--filter",
      "NetlinkMonitorTests/steps",
    ])
    #expect(status == 0, "\(output)")
    #expect(output.contains("with 1 test") && output.contains("passed"), "\(output)")
  }

  @Test("the steps of the child", .enabled(if: getenv(childVariable) != nil))
  func steps() async throws {
    let monitor = NetlinkMonitor(.init(), log: Self.log)
    await monitor.start()
    #expect(monitor.current.kind == .none)
    for (commands, kind, interface) in Self.script {
      for command in commands.split(separator: ";") {
        let arguments = ["ip"] + command.split(separator: " ").map(String.init)
        #expect(try await ChildProcess.run(arguments).status == 0, "ip \(command)")
      }
      try await eventually("\(kind) by \(interface ?? "nothing") after: \(commands)") {
        monitor.current.kind == kind && monitor.current.interface == interface
      }
    }
    await monitor.stop()
  }

  private static let script: [(String, NetworkStatus.Kind, String?)] = [
    (
      "link add eth7 type veth peer name peer7;addr add 10.9.0.1/24 dev eth7;link set peer7 up;"
        + "link set eth7 up;route add default via 10.9.0.2 dev eth7 metric 100", .unmetered, "eth7"
    ),
    (
      "link add wwan7 type veth peer name peer8;addr add 10.8.0.1/24 dev wwan7;link set peer8 up;link set wwan7 up;"
        + "route add default via 10.8.0.2 dev wwan7 metric 50", .metered, "wwan7"
    ),
    ("link set peer8 down", .unmetered, "eth7"),
    ("link set peer8 up", .metered, "wwan7"),
    ("route del default dev wwan7", .unmetered, "eth7"),
    ("link del eth7", .none, nil),
    (
      "-6 addr add fd00::1/64 dev wwan7 nodad;-6 route add default via fd00::2 dev wwan7", .metered, "wwan7"
    ),
  ]

  @Test("a change of configuration is decided on again, and listeners learn the result")
  func update() async throws {
    let monitor = NetlinkMonitor(.init(), log: Self.log)
    await monitor.start()
    let before = monitor.current
    var changes = monitor.changes().makeAsyncIterator()
    var configuration = DaemonConfiguration.Network()
    configuration.interfaces = [.init(glob: "*", counts: .ignored)]
    await monitor.update(configuration)
    #expect(monitor.current.kind == .none)
    if before != monitor.current { #expect(await changes.next() == monitor.current) }
    await monitor.stop()
  }
}
