import Dispatch
import PrismBase
import PrismControl
import Testing

@testable import prismctl

@Suite("A daemon that says nothing") struct ControlConnectionTests {
  private static let probing = ControlConnection.Probing(everySeconds: 1, withinSeconds: 1)
  private static let done = #"{"done":true}"#

  @Test("the command ends where another question is not answered either, and where its time is limited")
  func hangs() throws {
    let held = DispatchSemaphore(value: 0)
    let daemon = try HostileDaemon { request in
      if request.command != .network { held.wait() }
      return Self.done
    }
    defer { for _ in 0..<2 { held.signal() } }
    let limited = ControlConnection(path: daemon.path, timeoutSeconds: 1, isExact: true)
    #expect(Self.failure(of: limited)?.message.contains("does not answer") == true)
    let silent = try HostileDaemon { _ in
      held.wait()
      return Self.done
    }
    let probing = ControlConnection(path: silent.path, timeoutSeconds: nil, isExact: true, Self.probing)
    let failure = Self.failure(of: probing)
    #expect(failure?.exitCode == 69 && failure?.message.contains("takes connections and does not answer") == true)
    for _ in 0..<2 { held.signal() }
  }

  @Test("what lasts longer is waited for as long as another question is answered")
  func lasts() throws {
    let probes = DispatchSemaphore(value: 0)
    let daemon = try HostileDaemon { request in
      if request.command == .network { probes.signal() } else { for _ in 0..<2 { probes.wait() } }
      return Self.done
    }
    let connection = ControlConnection(path: daemon.path, timeoutSeconds: nil, isExact: true, Self.probing)
    #expect(Self.failure(of: connection) == nil, "two silences, two answered questions")
  }

  private static func failure(of connection: ControlConnection) -> Failure? {
    do throws(Failure) { try connection.ask(ControlRequest(.remove)) { _ in } } catch { return error }
    return nil
  }
}
