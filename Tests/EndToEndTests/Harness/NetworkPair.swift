import Foundation
import Glibc
import PrismTestSupport
import Synchronization
import Testing

/// Two network namespaces of a test's own, with a cable (a veth pair) or a long line between them. The daemon lives at its
/// near end, the collector at the far one. Nothing of the machine's network is touched. Needs root.
final class NetworkPair: Sendable {
  static let isPermitted = getuid() == 0
  static let why: Comment = "network namespaces need root"

  enum Family: String, Sendable, CaseIterable {
    case ipv4, ipv6
    fileprivate var option: String { self == .ipv4 ? "-4" : "-6" }
    fileprivate var near: String { self == .ipv4 ? "10.213.77.1/24" : "fd77::1/64" }
    fileprivate var far: String { self == .ipv4 ? "10.213.77.2" : "fd77::2" }
  }

  private static let made = Mutex(0)
  private let name: String
  let family: Family
  private let line = Mutex<Child?>(nil)
  /// Of the line's program.
  private let folder = TemporaryFolder.make()

  var daemonSide: [String] { ["ip", "netns", "exec", "\(name)-a"] }
  var collectorSide: [String] { ["ip", "netns", "exec", "\(name)-b"] }
  /// Where the collector listens, with the port.
  var far: String { family == .ipv4 ? "\(family.far):8480" : "[\(family.far)]:8480" }

  private init(_ family: Family) {
    self.family = family
    let number = Self.made.withLock { made in
      made += 1
      return made
    }
    name = "prism-\(getpid())-\(number)"
  }

  /// - Parameter link: the near end's name.
  /// - Parameter line: in place of a cable.
  static func with(
    _ family: Family = .ipv4, link: String = "near", over line: LongLine? = nil,
    _ body: (NetworkPair) async throws -> Void
  ) async throws {
    let pair = NetworkPair(family)
    do {
      try await pair.make(link, line)
      try await body(pair)
    } catch {
      await pair.remove()
      throw error
    }
    await pair.remove()
  }

  private func make(_ link: String, _ line: LongLine?) async throws {
    let (a, b) = ("\(name)-a", "\(name)-b")
    try await ip("netns add \(a)")
    try await ip("netns add \(b)")
    if let line {
      let child = try await line.join((a, link), (b, "far"), in: folder)
      self.line.withLock { $0 = child }
    } else {
      try await ip("-n \(a) link add \(link) type veth peer name far netns \(b)")
    }
    try await ip("-n \(b) addr add \(family.far)/\(family == .ipv4 ? "24" : "64 nodad") dev far")
    try await ip("-n \(b) link set far up")
    try await ip("-n \(b) link set lo up")  // the way from the probe to its own address
    try await up(link)
  }

  /// Switches the near end on, with its address and the default route.
  func up(_ link: String) async throws {
    let a = "\(name)-a"
    try await ip("-n \(a) \(family.option) addr replace \(family.near)\(family == .ipv6 ? " nodad" : "") dev \(link)")
    try await ip("-n \(a) link set \(link) up")
    try await ip("-n \(a) \(family.option) route replace default via \(family.far) dev \(link)")
  }

  /// Its routes go with it.
  func down(_ link: String) async throws { try await ip("-n \(name)-a link set \(link) down") }

  func rename(_ link: String, to name: String) async throws {
    try await down(link)
    try await ip("-n \(self.name)-a link set \(link) name \(name)")
    try await up(name)
  }

  /// Ends the line. - Returns: the packets of the near side that came to it, and those for which its queue had no place.
  func endLine() async throws -> (came: Int, dropped: Int) {
    guard let child = line.withLock({ $0 }) else { throw Failed("a cable counts nothing") }
    try await child.end(SIGTERM)
    struct Counts: Decodable {
      struct Side: Decodable { let pkts: Int, full: Int }
      let ab: Side
    }
    let words = Data((child.lastWords.split(separator: "\n").last ?? "").utf8)
    let counts = try JSONDecoder().decode(Counts.self, from: words).ab
    return (counts.pkts, counts.full)
  }

  private func remove() async {
    // its devices go with it
    if let child = line.withLock({ $0 }), child.isRunning { _ = try? await child.end(SIGKILL) }
    try? FileManager.default.removeItem(atPath: folder)  // a left folder harms no test
    for side in ["a", "b"] { try? await ip("netns del \(name)-\(side)") }  // one of them may never have been made
  }

  private func ip(_ words: String) async throws {
    let ran = try await Programs.run("ip", words.split(separator: " ").map { String($0) })
    guard ran.exitCode == 0 else { throw Failed("ip \(words): \(ran.error)") }
  }
}

/// Runs `body` with both programs at their ends of a cable.
func withHarness(
  across pair: NetworkPair, namespaces: [String: String], extra: String = "", _ body: (Harness) async throws -> Void
) async throws {
  let harness = try await Harness(
    namespaces: namespaces, extra: extra, collectorAddress: pair.far, daemonPrefix: pair.daemonSide,
    collectorPrefix: pair.collectorSide)
  do {
    try await harness.startCollector()
    try await harness.startDaemon()
    try await body(harness)
  } catch {
    let diagnosis = await harness.diagnosis
    await harness.stop()
    throw Failed("\(error)\n\(diagnosis)")
  }
  await harness.stop()
}
