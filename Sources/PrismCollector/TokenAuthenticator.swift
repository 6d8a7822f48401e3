import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import Synchronization

struct KnownToken: Sendable, Equatable {
  /// SHA-256, in hexadecimal digits.
  let hash: String
  /// Names with `*` and `?` that its reader is held to; nil: all.
  var namespaces: [String]?
}

/// Knows the bearer tokens of one role by their SHA-256. They come from a file (`TokenList`), which is read again when 2 s have
/// passed: a new token is good within 5. A file that can't be read, is over 64 KiB, or is no list of tokens changes nothing.
actor TokenAuthenticator {
  /// A file that was cut here would let in the beginning of a token.
  static let fileBytesMax = 65_536

  private let executor = DispatchQueueExecutor(label: "prism.collector.tokens")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let path: String
  private let isOfReaders: Bool
  private let time: any TimeSource
  private let log: Logger
  private struct State {
    var tokens: [KnownToken] = []
    var readAt: Duration?
  }
  private nonisolated let state = Mutex(State())

  init(path: String, isOfReaders: Bool = false, time: any TimeSource, log: Logger) {
    (self.path, self.isOfReaders, self.time, self.log) = (path, isOfReaders, time, log)
  }

  /// - Parameter authorization: the request's header.
  func accepts(_ authorization: String?) -> Bool { token(of: authorization) != nil }

  /// - Returns: nil: the request brings no token of the file.
  func token(of authorization: String?) -> KnownToken? {
    refresh()
    return Self.hash(ofBearer: authorization).flatMap { Self.find($0, among: tokens) }
  }

  /// Never waits. - Returns: nil if the file has to be read for the answer, which is begun.
  nonisolated func acceptsNow(_ authorization: String?) -> Bool? {
    let known = state.withLock { $0 }
    if let given = Self.hash(ofBearer: authorization), Self.find(given, among: known.tokens) != nil { return true }
    if isFresh(known) { return false }
    Task { await refresh() }
    return nil
  }

  /// Signs a text with a token, for a session that ends when the token is taken out of the file.
  /// - Returns: 64 hexadecimal digits; nil if the token is not in the file.
  func sign(_ text: String, with token: String) -> String? {
    refresh()
    guard let given = Self.hash(of: Array(token.utf8)), Self.find(given, among: tokens) != nil else { return nil }
    return Self.code(of: text, under: given)
  }

  /// - Returns: the token that signed the text; nil if no token of the file did.
  func signer(of text: String, code: String) -> KnownToken? {
    refresh()
    let given = Array(code.utf8)
    return tokens.first { token in
      Self.code(of: text, under: Array(token.hash.utf8)).map { Self.areEqual(given, Array($0.utf8)) } ?? false
    }
  }

  private static func hash(ofBearer authorization: String?) -> [UInt8]? {
    let given = authorization ?? ""
    return given.hasPrefix("Bearer ") ? hash(of: Array(given.dropFirst("Bearer ".count).utf8)) : nil
  }

  /// Looks at all of them, whichever it is.
  private static func find(_ given: [UInt8], among tokens: [KnownToken]) -> KnownToken? {
    tokens.reduce(nil) { areEqual(given, Array($1.hash.utf8)) ? $0 ?? $1 : $0 }
  }

  private nonisolated var tokens: [KnownToken] { state.withLock { $0.tokens } }

  private nonisolated func isFresh(_ state: State) -> Bool {
    state.readAt.map { time.uptime - $0 < .seconds(2) } ?? false
  }

  /// Hexadecimal digits; nil only where the library fails.
  private static func hash(of token: [UInt8]) -> [UInt8]? {
    (try? Hashing.sha256(token)).map { Array(Hex.encode($0).utf8) }
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
    if state.withLock({ isFresh($0) }) { return }
    defer { state.withLock { $0.readAt = time.uptime } }
    do throws(FileFault) {
      let list = try TokenList(
        try FileReading.read(path, bytesMax: Self.fileBytesMax).bytes, isOfReaders: isOfReaders)
      let tokens = list.entries.compactMap { entry in
        switch entry.secret {
        case .token(let bytes):
          Self.hash(of: bytes).map {
            KnownToken(hash: String(decoding: $0, as: UTF8.self), namespaces: entry.namespaces)
          }
        case .hash(let digits): KnownToken(hash: digits, namespaces: entry.namespaces)
        }
      }
      state.withLock { $0.tokens = tokens }
    } catch {
      return log.fault(
        "collector.tokens", "the token file can't be used, so the tokens that were read last stay",
        ["path": path, "cause": error.reason])
    }
    log.faultEnded("collector.tokens", "the token file can be used again")
  }
}
