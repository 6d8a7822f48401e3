import PrismBase
import PrismConfig
import PrismProtocol

// The engine's needs from outside. The edge (`PrismLinux`) implements them; tests script them.

extension HeldFile {
  /// The header that shows the token in this file.
  var authorization: (name: String, value: String) {
    ("Authorization", "Bearer \(String(decoding: content.bytes, as: UTF8.self))")
  }
}

extension NamespaceConfiguration {
  var authorization: [(name: String, value: String)] { token.map { [$0.authorization] } ?? [] }
}

/// A file in the state folder that is kept over restarts: the cached remote configuration, or the use of the keys.
public protocol KeptFile: Sendable {
  /// nil if there is no file.
  func read(bytesMax: Int) async throws(KeptFileFault) -> [UInt8]?
  /// Whole or not at all, through a power loss too.
  func write(_ bytes: [UInt8]) async throws(KeptFileFault)
  /// Moves what can't be used out of the way. - Returns: where to.
  func setAside() async throws(KeptFileFault) -> String
}

/// A kept file can't be read or written.
public struct KeptFileFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// The file and its fault.
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// The network, by the kernel's routes and the configuration's globs.
public struct NetworkStatus: Sendable, Equatable {
  /// `none`: there is no network.
  public enum Kind: String, Sendable, CaseIterable { case none, metered, unmetered }
  /// The kind of the network.
  public var kind: Kind
  /// Of the default route; nil without one.
  public var interface: String?
  /// For people: "eth0 carries the default route; Ethernet counts as unmetered".
  public var reason: String

  public init(kind: Kind, interface: String?, reason: String) {
    (self.kind, self.interface, self.reason) = (kind, interface, reason)
  }
}

/// Reports the network; the kernel pushes changes, nothing polls.
public protocol NetworkMonitor: Sendable {
  var current: NetworkStatus { get }
  /// Every change from now on, the newest only where the reader is behind.
  func changes() -> AsyncStream<NetworkStatus>
}

/// Random numbers, passed in so that a test can replay them.
public struct Randomness: RandomNumberGenerator, Sendable {
  private let draw: @Sendable () -> UInt64
  public init(_ draw: @escaping @Sendable () -> UInt64) { self.draw = draw }
  public func next() -> UInt64 { draw() }

  /// The system's own.
  public static let system = Randomness {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}
