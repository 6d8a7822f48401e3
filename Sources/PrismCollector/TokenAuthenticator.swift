import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// Knows the bearer tokens of one role: one a line of a file, read again when 2 s have passed, so that a new token is
/// good within 5. A file that can't be read, or is over 64 KiB, leaves those in force that were read last.
actor TokenAuthenticator {
  /// A file that was cut here would let in the beginning of a token.
  static let fileBytesMax = 65_536

  private let executor = DispatchQueueExecutor(label: "prism.collector.tokens")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let path: String
  private let time: any TimeSource
  private let log: Logger
  private var tokens: [[UInt8]] = []
  private var readAt: Duration?

  init(path: String, time: any TimeSource, log: Logger) { (self.path, self.time, self.log) = (path, time, log) }

  /// - Parameter authorization: the request's header.
  func accepts(_ authorization: String?) -> Bool {
    refresh()
    let given = Array((authorization ?? "").utf8)
    return tokens.reduce(false) { Self.areEqual(given, Array("Bearer ".utf8) + $1) || $0 }
  }

  /// Signs a text with a token, for a session that ends when the token is taken out of the file.
  /// - Returns: 64 hexadecimal digits; nil if the token is not in the file.
  func sign(_ text: String, with token: String) -> String? {
    refresh()
    let given = Array(token.utf8)
    guard tokens.reduce(false, { Self.areEqual(given, $1) || $0 }) else { return nil }
    return Self.code(of: text, under: given)
  }

  /// - Returns: the token that signed the text; nil if no token of the file did.
  func signer(of text: String, code: String) -> String? {
    refresh()
    let given = Array(code.utf8)
    return tokens.first { Self.code(of: text, under: $0).map { Self.areEqual(given, Array($0.utf8)) } ?? false }
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// nil only where the library fails.
  static func code(of text: String, under token: [UInt8]) -> String? {
    (try? Hashing.hmacSHA256(key: Secret(token), Array(text.utf8))).map { Hex.encode($0) }
  }

  /// Takes as long for any two of one length, so that a token can't be guessed byte by byte.
  static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    zip(a, b).reduce(UInt8(a.count == b.count ? 0 : 1)) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private func refresh() {
    let now = time.uptime
    if let readAt, now - readAt < .seconds(2) { return }
    readAt = now
    do throws(FileFault) {
      tokens = try FileReading.read(path, bytesMax: Self.fileBytesMax).bytes.split { $0 <= UInt8(ascii: " ") }.map {
        Array($0)
      }
    } catch {
      return log.fault("collector.tokens", "the token file can't be read", ["path": path, "cause": error.reason])
    }
    log.faultEnded("collector.tokens", "the token file can be read again")
  }
}
