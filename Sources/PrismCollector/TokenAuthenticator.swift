import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// A line of a file of tokens.
struct KnownToken: Sendable, Equatable {
  /// SHA-256, in hexadecimal digits.
  let hash: String
  /// Names with `*` and `?` that its reader is held to; nil: all.
  var namespaces: [String]?
}

/// Knows the bearer tokens of one role by their SHA-256, and the readers of that role by name. They come from a file
/// (`TokenList`), which is read again when it changes.
struct TokenAuthenticator: Sendable {
  private struct Known {
    var tokens: [KnownToken] = []
    /// The namespaces of each subject; nil: all.
    var subjects: [String: [String]?] = [:]
  }

  private let file: WatchedFile<Known>

  init(path: String, isOfReaders: Bool = false, time: any TimeSource, log: Logger) {
    file = WatchedFile(path: path, time: time, log: log) { (bytes) throws(FileFault) in
      Self.known(try TokenList(bytes, isOfReaders: isOfReaders))
    }
  }

  private static func known(_ list: TokenList) -> Known {
    list.entries.reduce(into: Known()) { known, entry in
      switch entry.secret {
      case .token(let bytes):
        guard let hash = hash(of: bytes) else { return }
        known.tokens.append(KnownToken(hash: String(decoding: hash, as: UTF8.self), namespaces: entry.namespaces))
      case .hash(let digits): known.tokens.append(KnownToken(hash: digits, namespaces: entry.namespaces))
      case .subject(let name): known.subjects.updateValue(entry.namespaces, forKey: name)
      }
    }
  }

  /// - Parameter authorization: the request's header.
  func accepts(_ authorization: String?) async -> Bool { await token(of: authorization) != nil }

  /// - Returns: nil: the request brings no token of the file.
  func token(of authorization: String?) async -> KnownToken? {
    let known = await file.value()
    return Self.find(Self.hash(ofBearer: authorization), among: known)
  }

  /// Never waits. - Returns: nil if the file has to be read for the answer, which is begun.
  func acceptsNow(_ authorization: String?) -> Bool? {
    let (known, isFresh) = file.valueNow()
    return Self.find(Self.hash(ofBearer: authorization), among: known) != nil ? true : isFresh ? false : nil
  }

  /// - Returns: the namespaces of a reader that is known by name, where nil are all; nil: it is not in the file.
  func namespaces(ofSubject subject: String) async -> [String]?? { await file.value()?.subjects[subject] }

  /// Signs a text with a token, for a session that ends when the token is taken out of the file.
  /// - Returns: 64 hexadecimal digits; nil if the token is not in the file.
  func sign(_ text: String, with token: String) async -> String? {
    let known = await file.value()
    return Self.find(Self.hash(of: Array(token.utf8)), among: known).flatMap {
      Self.code(of: text, under: Array($0.hash.utf8))
    }
  }

  /// - Returns: the token that signed the text; nil if no token of the file did.
  func signer(of text: String, code: String) async -> KnownToken? {
    let given = Array(code.utf8)
    return await file.value()?.tokens.first { token in
      Self.code(of: text, under: Array(token.hash.utf8)).map { Self.areEqual(given, Array($0.utf8)) } ?? false
    }
  }

  private static func hash(ofBearer authorization: String?) -> [UInt8]? {
    let given = authorization ?? ""
    return given.hasPrefix("Bearer ") ? hash(of: Array(given.dropFirst("Bearer ".count).utf8)) : nil
  }

  /// Looks at all of them, whichever it is.
  private static func find(_ given: [UInt8]?, among known: Known?) -> KnownToken? {
    guard let given, let known else { return nil }
    return known.tokens.reduce(nil) { areEqual(given, Array($1.hash.utf8)) ? $0 ?? $1 : $0 }
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
}
