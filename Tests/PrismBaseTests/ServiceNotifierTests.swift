import Glibc
import PrismTestSupport
import Testing

@testable import PrismBase

@Suite("Messages to the service manager")
struct ServiceNotifierTests {
  private let folder = TemporaryFolder()

  /// A datagram socket as systemd's; `@` begins an abstract name.
  private func listen(_ name: String) -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    let address = name.hasPrefix("@") ? UnixAddress(abstract: String(name.dropFirst())) : UnixAddress(path: name)
    let bound = address?.withPointer { bind(descriptor, $0, $1) }
    #expect(bound == 0)
    return descriptor
  }

  private func receive(_ descriptor: Int32) -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : ""
  }

  @Test("over a socket with a path and over an abstract one", arguments: [false, true])
  func messages(isAbstract: Bool) {
    let name = isAbstract ? "@prism-test-\(getpid())" : folder("notify")
    let descriptor = listen(name)
    defer { close(descriptor) }
    let notifier = ServiceNotifier(socket: name)
    notifier.ready(status: "takes reports\non two sockets")
    #expect(receive(descriptor) == "READY=1\nSTATUS=takes reports on two sockets")
    notifier.reloading()
    #expect(receive(descriptor).wholeMatch(of: /RELOADING=1\nMONOTONIC_USEC=[0-9]+/) != nil)
    notifier.watchdog()
    #expect(receive(descriptor) == "WATCHDOG=1")
    notifier.stopping(status: "bye")
    #expect(receive(descriptor) == "STOPPING=1\nSTATUS=bye")
  }

  @Test(
    "without a socket, or with one that no process listens on, nothing happens",
    arguments: [nil, "", "vsock:2:1", "/no"])
  func nobody(socket: String?) {
    ServiceNotifier(socket: socket).ready(status: "up")
  }

  @Test("the watchdog is fed twice within what is allowed, when it watches this process")
  func watchdog() {
    let own = String(getpid())
    let interval = { ServiceNotifier(socket: nil, watchdogMicroseconds: $0, watchdogProcess: $1).watchdogInterval }
    #expect(interval("3000000", own) == .milliseconds(1500))
    #expect(interval("3000000", nil) == .milliseconds(1500))
    #expect(interval("3000000", "1") == nil)
    #expect(interval("0", own) == nil)
    #expect(interval("soon", own) == nil)
    #expect(interval(nil, nil) == nil)
  }
}
